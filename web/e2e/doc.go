// Package e2e holds the outside-in tests: the built binary in a process of its own, real PostgreSQL, real Chromium, unmodified MCP
// clients, and upstreams with a ground truth. It looks at the product only as people, agents and operators can, and never calls into
// it; the one exception are tests that break the database on purpose.
package e2e
