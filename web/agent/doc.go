// Package agent owns what programs reach: the service API of an organization's own programs, and the gateway that a run's agent calls.
// It turns HTTP and JSON-RPC into one question to the domain and the answer back. It decides nothing, holds no credential, and offers no
// way to approve.
package agent
