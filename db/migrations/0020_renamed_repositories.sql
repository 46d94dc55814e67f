-- GitHub may call a repository by another name than the one it was connected under; its number stays. Only that name may change.

-- +goose Up
ALTER TABLE git_repositories ADD COLUMN now_named text CHECK (now_named = lower(now_named) AND now_named <> name);
GRANT UPDATE (now_named) ON git_repositories TO countersign_app;

-- +goose Down
REVOKE UPDATE (now_named) ON git_repositories FROM countersign_app;
ALTER TABLE git_repositories DROP COLUMN now_named;
