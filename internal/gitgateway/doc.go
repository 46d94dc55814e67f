// Package gitgateway owns what the gateway understands of git: pkt-lines, the one push a run may ask for, what of an advertisement an
// agent may see, rules for branch names, and the quarantine in which a pack is looked at before anybody decides on it. It accepts only
// what real git reads as the same command. It never opens a connection, holds no credential, runs no hook, and gives no git child a
// network, a shell or a configuration of this machine.
package gitgateway
