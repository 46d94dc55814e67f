package credential

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/secret"
)

// A connection string holds where a database is, who logs in, and options, some of which open local files, read credentials of the
// machine or switch TLS off. It is taken apart here and never handed on: a driver gets the parts that the two lists allow.
//
// This is the one file in which a secret leaves its Value for somebody else than an outgoing request: the wire protocol of MongoDB proves
// the knowledge of a password by a calculation that only the driver makes. docs/adr/0014-mongodb-login.md says what bounds that.

// Login authenticates to a database. It implements egress.Login.
type Login struct {
	user     string
	password secret.Value
	address  egress.Destination
	options  map[string]string
	redactor *Redactor
}

// Present hands the login to the one function that makes a driver's options of it, which must not keep it elsewhere.
func (l *Login) Present(use func(user, password string)) { use(l.user, l.password.Reveal()) }

// Option is an allowed option of the connection string, by its name in lower case; empty where it is not there.
func (l *Login) Option(name string) string { return l.options[name] }

// Redact takes the password out of what a server answered.
func (l *Login) Redact(b []byte) []byte { return l.redactor.Bytes(b) }

// ConnectionString is the contract with one secret that holds address, user and password.
func ConnectionString(field string) Contract { return Contract{connection: field} }

// AddressOf is where a connection string leads, without anything secret.
func AddressOf(v secret.Value) (egress.Destination, error) {
	l, err := parseLogin(v.Reveal())
	if err != nil {
		return egress.Destination{}, err
	}
	return l.address, nil
}

// Login is the login of a connection string, for the place it was bound to.
func (a *Authorizer) Login() (egress.Login, bool) { return a.login, a.login != nil }

// bindLogin holds a connection string to the place that was stored for it. An operator's own endpoint replaces the servers it names.
func bindLogin(raw secret.Value, d egress.Destination) (*Login, error) {
	l, err := parseLogin(raw.Reveal())
	if err != nil {
		return nil, err
	}
	if !d.Overridden() && l.address.Origin() != d.Origin() {
		return nil, ErrElsewhere
	}
	l.address = d
	l.redactor = NewRedactor(l.password, raw)
	return l, nil
}

// choices are the options that a connection string may hold, and what is allowed of each; nil: this server sets its own, so that the
// vendor's ready-made strings can be pasted as they are.
var choices = map[string]func(string) bool{
	"appname": nil, "retryreads": nil, "retrywrites": nil, "connecttimeoutms": nil, "serverselectiontimeoutms": nil, "sockettimeoutms": nil, "timeoutms": nil,
	"maxpoolsize": nil, "minpoolsize": nil, "maxidletimems": nil, "compressors": nil, "heartbeatfrequencyms": nil, "localthresholdms": nil, "srvmaxhosts": nil,
	"wtimeoutms": nil, "maxstalenessseconds": nil, "readpreferencetags": nil,
	"tls": isTrue, "ssl": isTrue, "journal": isTrue,
	"replicaset": isWord, "authsource": isWord,
	"authmechanism": func(s string) bool { return s == "SCRAM-SHA-256" || s == "SCRAM-SHA-1" },
	"readpreference": func(s string) bool {
		return slices.Contains([]string{"primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"}, s)
	},
	"readconcernlevel": func(s string) bool {
		return slices.Contains([]string{"local", "available", "majority", "linearizable"}, s)
	},
	"w": func(s string) bool {
		n, err := strconv.Atoi(s)
		return s == "majority" || err == nil && n > 0 && n < 51
	},
}

// dangerous are options with a reason of their own to be refused. Whatever is on neither list is refused without one.
var dangerous = map[string]string{
	"tlscafile": "names a file of this server", "tlscertificatekeyfile": "names a file of this server", "tlscertificatefile": "names a file of this server",
	"tlsprivatekeyfile": "names a file of this server", "tlscertificatekeyfilepassword": "belongs to a file of this server",
	"tlsinsecure": "would let anybody on the way read along", "tlsallowinvalidcertificates": "would let anybody on the way read along",
	"tlsallowinvalidhostnames": "would let anybody on the way read along", "tlsdisableocspendpointcheck": "changes how certificates are checked",
	"tlsdisablecertificaterevocationcheck": "changes how certificates are checked", "authmechanismproperties": "belongs to logins that read this server's own credentials",
	"srvservicename": "changes which servers are found", "directconnection": "changes which servers are found", "loadbalanced": "changes which servers are found",
	"proxyhost": "leads through another machine", "proxyport": "leads through another machine", "proxyusername": "leads through another machine", "proxypassword": "leads through another machine",
}

func isTrue(s string) bool { return s == "true" }

func isWord(s string) bool {
	return s != "" && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-$", r)
	}) < 0
}

func badString(what, next string) error {
	f := fault.Field("", what)
	f.Next = next
	return f
}

// parseLogin takes a connection string apart. No fault repeats a part of it that could be secret.
func parseLogin(s string) (*Login, error) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || (scheme != "mongodb" && scheme != "mongodb+srv") {
		return nil, badString("The connection string must start with mongodb:// or mongodb+srv://.", "Copy it from the page of your cluster.")
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	at := strings.LastIndex(authority, "@")
	if at < 0 {
		return nil, badString("The connection string names no user and password, or has a / or ? in the password.", "Write it like mongodb+srv://USER:PASSWORD@cluster0.example.mongodb.net/, with %2F for / and %3F for ?.")
	}
	l := &Login{options: map[string]string{}}
	if err := l.readUser(authority[:at]); err != nil {
		return nil, err
	}
	if strings.Contains(authority[at:], "%") {
		return nil, badString("The connection string names a socket file instead of a host.", "Name the servers by their host names.")
	}
	address, err := egress.Database(scheme + "://" + authority[at+1:])
	if err != nil {
		return nil, badString(fault.Of(err).What, "Copy the connection string from the page of your cluster.")
	}
	l.address = address
	return l, l.readOptions(tail)
}

func (l *Login) readUser(info string) error {
	name, password, ok := strings.Cut(info, ":")
	user, bad := url.PathUnescape(name)
	clear, worse := url.PathUnescape(password)
	switch {
	case !ok || bad != nil || worse != nil || user == "" || clear == "" || strings.ContainsAny(info, "@") || strings.Contains(password, ":"):
		return badString("The connection string needs a user and a password; the characters : / ? # [ ] @ % in them are written as %3A, %2F and so on.", "Write it like mongodb+srv://USER:PASSWORD@cluster0.example.mongodb.net/.")
	case strings.HasPrefix(clear, "<") && strings.HasSuffix(clear, ">"):
		return badString("The connection string still has the vendor's placeholder for the password.", "Put the password of the database user in its place.")
	}
	if why := wrong(clear); why != "" {
		return badString(why, "")
	}
	l.user, l.password = user, secret.New(clear)
	return nil
}

// readOptions reads what stands behind the servers: the database to log in at, and options.
func (l *Login) readOptions(tail string) error {
	path, query, _ := strings.Cut(tail, "?")
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name = strings.ToLower(name)
		value, bad := url.QueryUnescape(value)
		allowed, known := choices[name]
		_, twice := l.options[name]
		switch {
		case dangerous[name] != "":
			return badString("The option "+name+" "+dangerous[name]+", so it is not taken.", "Remove it from the connection string.")
		case !known || !isWord(name):
			return badString("The connection string has an option that this server does not know.", "Keep the part before the ? and authSource or replicaSet where you need them.")
		case bad != nil || twice || allowed != nil && !allowed(value):
			return badString("The option "+name+" has a value that is not taken, or is there twice.", "Remove it from the connection string.")
		}
		l.options[name] = value
	}
	if path = strings.TrimPrefix(path, "/"); path != "" {
		if !isWord(path) {
			return badString("The database behind the / is not a plain name.", "Remove it; which database agents may touch is chosen below.")
		}
		if l.options["authsource"] == "" { // as the drivers do
			l.options["authsource"] = path
		}
	}
	return nil
}
