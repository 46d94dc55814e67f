// Package egress owns the only way out: it is the only builder of HTTP clients, and every connection they open passes the address
// rule at the moment of dialling. A client belongs to one destination of one connection and talks to no other origin, follows no
// redirect, uses no proxy, shares no connection with anybody else and reads no more than its bound. It speaks HTTP/1.1 by a small client of
// its own, behind the interfaces of net/http, and refuses what of an answer could be read in two ways. It never knows a secret: what
// authorises a request is an opaque Editor. It keeps no list of exceptions; only an operator's own endpoint may be private.
package egress
