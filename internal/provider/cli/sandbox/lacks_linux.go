package sandbox

import "os"

// Lacks says, a sentence each, what this machine cannot hold a program to. What is not listed holds.
func Lacks() (out []string) {
	if !separable() {
		out = append(out,
			"This kernel or its settings allow no user namespaces: a vendor's command shares the network and the process table of this server, and its home lies on the server's disk.")
	}
	if !filterable() {
		out = append(out, "This kernel filters no system calls: a vendor's command can reach sockets in the file system that its user may write to, like that of a database.")
	}
	if !filterable() && !separable() {
		out = append(out, "Nothing keeps what a vendor's command starts in its process group: what detaches itself may outlive the call.")
	}
	v := landlockVersion()
	if v == 0 {
		out = append(out, "This kernel has no Landlock: a vendor's command can read whatever the user may that it runs as.")
	}
	if v < netVersion && !separable() {
		out = append(out, "This kernel's Landlock does not know connections: a vendor's command can reach other addresses than the relay, without a credential.")
	}
	if v < scopeVersion && !separable() && os.Getuid() != 0 {
		out = append(out, "This kernel's Landlock does not know signals: a vendor's command can end what its user runs, this server among it.")
	}
	return out
}
