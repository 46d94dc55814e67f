// Package action owns the durable action: one effect an agent wants to have, exactly as it will be sent, from the moment it is asked
// for until its truthful end. It owns the transition table, the seven fences and who may decide; a store makes each transition one
// compare-and-set statement with its audit row. It promises at most one dispatch per action, and knows no provider, no credential and
// no network. There is no edge from uncertain back to executing: what may have happened is reconciled, never sent again.
package action
