package sandbox

// Lacks says, a sentence each, what this machine cannot hold a program to. What is not listed holds.
func Lacks() (out []string) {
	if !separable() {
		out = append(out,
			"This kernel or its settings allow no user namespaces: a vendor's command shares the network and the process table of this server, and what detaches itself from its process group may outlive the call.")
	}
	switch v := landlockVersion(); {
	case v == 0:
		out = append(out, "This kernel has no Landlock: a vendor's command can read whatever the user may that it runs as.")
	case v < netVersion && !separable():
		out = append(out, "This kernel's Landlock does not know connections: a vendor's command can reach other addresses than the relay, without a credential.")
	}
	return out
}
