package mongodb

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/auth"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/provider"
	"countersign/internal/provider/direct"
)

// Codes of the server, from its error_codes.yml.
const (
	unauthorized         = 13
	authenticationFailed = 18
	maxTimeExpired       = 50
)

// definite are codes by which a server says that it did not begin a write: the request is malformed, not allowed, or not for this server.
// Codes of servers that stop, step down or time out are not among them: those may come after the write.
var definite = []int{
	2,   // BadValue
	9,   // FailedToParse
	14,  // TypeMismatch
	20,  // IllegalOperation
	26,  // NamespaceNotFound
	40,  // ConflictingUpdateOperators
	52,  // DollarPrefixedFieldName
	56,  // EmptyFieldName
	59,  // CommandNotFound
	66,  // ImmutableField
	72,  // InvalidOptions
	73,  // InvalidNamespace
	121, // DocumentValidationFailure
	166, // CommandNotSupportedOnView
	unauthorized, authenticationFailed,
	10107, // NotWritablePrimary: answered before the write
	13435, // NotPrimaryNoSecondaryOk
	10003, // CannotGrowDocumentInCappedNamespace
	10334, // BSONObjectTooLarge
	11000, // DuplicateKey
}

// explained turns the driver's error of a read into a fault, or into words where the request is what was wrong.
func explained(l egress.Login, err error) error {
	var command mongo.CommandError
	var selection topology.ServerSelectionError
	switch {
	case isRefused(err):
		return provider.Unauthorized()
	case errors.As(err, &command) && command.Code == maxTimeExpired:
		return provider.TimedOut(errors.New("the server's own limit"))
	case errors.As(err, &command) && command.Code == unauthorized:
		return &direct.Refused{Words: "The database user of this connection may not do this: " + said(l, command.Message)}
	case errors.As(err, &command) && !mongo.IsNetworkError(err) && command.Code != 0:
		if slices.Contains(definite, int(command.Code)) || command.Code >= 10000 && command.Code != 11600 && command.Code != 11602 {
			return &direct.Refused{Words: "MongoDB answered with error " + strconv.Itoa(int(command.Code)) + ": " + said(l, command.Message)}
		}
		return provider.Upstream("The database has a problem of its own (error "+strconv.Itoa(int(command.Code))+").", errors.New(command.Name))
	case errors.As(err, &selection):
		return provider.Unreachable("No server of the database can be reached.", quiet(err))
	case mongo.IsTimeout(err):
		return provider.TimedOut(context.DeadlineExceeded)
	}
	return provider.Broken(quiet(err))
}

// quiet keeps the server's bytes and the driver's, which quote addresses and commands, out of the cause.
func quiet(err error) error {
	if f := egress.FailureOf(err); f != egress.Broken {
		return errors.New(f.Sentence())
	}
	return errors.New("the connection broke")
}

// isRefused reports whether the server refused the login, as opposed to a connection that broke while logging in.
func isRefused(err error) bool {
	var command mongo.CommandError
	if errors.As(err, &command) && command.Code == authenticationFailed {
		return true
	}
	var login *auth.Error
	return errors.As(err, &login) && !mongo.IsNetworkError(err) && !mongo.IsTimeout(err) && !broke(err)
}

func broke(err error) bool {
	f := egress.FailureOf(err)
	return f != egress.Broken || mongo.IsNetworkError(err)
}

// said is a server's own words, without the password and without what hides.
func said(l egress.Login, words string) string {
	const most = 500
	words = provider.Printable(string(l.Redact([]byte(words))))
	if len(words) > most {
		words = words[:most] + "…"
	}
	return words
}

func outside(what string) error {
	return fault.New(fault.Forbidden, fault.OutsideResource, "This connection is limited to some "+what+", and the call touches another.", "Ask for something of the connection's own.")
}

func invalid(what, next string) error {
	return fault.New(fault.Invalid, fault.InvalidArguments, what, next)
}
