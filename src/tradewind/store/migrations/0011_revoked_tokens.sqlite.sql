-- login tokens that ended by a logout; kept until they would have expired
CREATE TABLE revoked_token (
  jti TEXT PRIMARY KEY,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX revoked_token_expiry ON revoked_token (expires_at);
