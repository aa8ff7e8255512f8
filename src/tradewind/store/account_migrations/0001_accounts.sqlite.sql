-- Accounts, sessions, tokens. Written by the API and the command line, never by the scheduler.

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE account (
  name TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  role TEXT NOT NULL,
  -- Argon2id; NULL: no password can be used to log in
  password TEXT,
  stamp TEXT NOT NULL,
  source TEXT NOT NULL,
  -- issuer and subject at the identity provider, or the distinguished name in the directory
  external_id TEXT UNIQUE,
  email TEXT NOT NULL DEFAULT '',
  full_name TEXT NOT NULL DEFAULT '',
  is_active INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL,
  last_login_at INTEGER
) WITHOUT ROWID;

CREATE TABLE custom_role (
  name TEXT PRIMARY KEY,
  description TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;

CREATE TABLE account_role (
  account TEXT NOT NULL,
  role TEXT NOT NULL,
  PRIMARY KEY (account, role)
) WITHOUT ROWID;

CREATE TABLE dag_grant (
  role TEXT NOT NULL,
  pattern TEXT NOT NULL,
  action TEXT NOT NULL,
  PRIMARY KEY (role, pattern, action)
) WITHOUT ROWID;

CREATE TABLE team (
  name TEXT PRIMARY KEY,
  description TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;

CREATE TABLE team_member (
  team TEXT NOT NULL,
  account TEXT NOT NULL,
  role TEXT NOT NULL,
  PRIMARY KEY (team, account)
) WITHOUT ROWID;
CREATE INDEX team_member_account ON team_member (account);

CREATE TABLE team_dags (
  team TEXT NOT NULL,
  kind TEXT NOT NULL,
  pattern TEXT NOT NULL,
  PRIMARY KEY (kind, pattern)
) WITHOUT ROWID;

CREATE TABLE account_token (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  label TEXT NOT NULL,
  hash TEXT NOT NULL,
  role TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  expires_at INTEGER,
  last_used_at INTEGER,
  last_address TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX account_token_account ON account_token (account);

CREATE TABLE account_session (
  id TEXT PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  account TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  address TEXT NOT NULL,
  agent TEXT NOT NULL,
  external TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX account_session_account ON account_session (account);

CREATE TABLE known_device (
  hash TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX known_device_account ON known_device (account);

-- entries for the audit log, until the scheduler has written them there
CREATE TABLE account_event (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  event TEXT NOT NULL,
  actor TEXT NOT NULL,
  detail TEXT NOT NULL
);
