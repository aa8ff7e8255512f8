-- login tokens that ended by a logout; kept until they would have expired
CREATE TABLE revoked_token (
  jti TEXT COLLATE "C" PRIMARY KEY,
  expires_at BIGINT NOT NULL
);
CREATE INDEX revoked_token_expiry ON revoked_token (expires_at);
