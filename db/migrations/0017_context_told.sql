-- What an organization writes is told to its runs when they connect, and replicas remember what they told with the capability of the run.

-- +goose Up

CREATE TRIGGER context_revisions_change_capabilities AFTER INSERT ON context_revisions
    FOR EACH ROW EXECUTE FUNCTION capability_changed();

-- +goose Down
DROP TRIGGER context_revisions_change_capabilities ON context_revisions;
