package action

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"countersign/internal/canonical"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/run"
)

// MaxArguments is the largest canonical argument object, in bytes.
const MaxArguments = 1 << 20

// Arguments brings an agent's arguments into the one form that is shown, hashed and sent. Absent arguments are the empty object.
func Arguments(raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return []byte("{}"), nil
	}
	out, err := canonical.Limits{Bytes: MaxArguments}.Object(raw)
	if err != nil {
		what := fault.Of(err).What
		return nil, fault.New(fault.Invalid, fault.InvalidArguments, "The arguments cannot be used: "+what, "Send one JSON object without duplicate keys, as the tool's input schema describes.")
	}
	return out, nil
}

// Digest binds an approval: it covers tool, connection, definition, destination and arguments, each with its length in front. Hex SHA-256.
func Digest(key connector.Key, tool, definition, destination string, arguments []byte) string {
	return hashOf("countersign action v1", string(key), tool, definition, destination, string(arguments))
}

// DerivedKey is the idempotency key of a call that brings none: the same call in the same run is the same action.
func DerivedKey(r run.ID, key connector.Key, tool string, arguments []byte) string {
	return "auto:" + hashOf("countersign call v1", string(r), string(key), tool, string(arguments))
}

func hashOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}
