package egress

import "errors"

// ErrUnauthorized is a cause of whatever says that the credential itself was refused: by the service, or by the endpoint that trades it
// for a token.
var ErrUnauthorized = errors.New("the upstream refused the credential")
