// Package session owns who a browser is signed in as: the cookie, its server-side record, rotation at sign-in, and the rate of
// attempts. The cookie holds a random value and nothing else. It decides no permission.
package session
