package github

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fileText is the text of a file, or the names in a folder. What is neither is said in words
// (https://docs.github.com/en/rest/repos/contents#get-repository-content).
func fileText(raw json.RawMessage) (string, bool) {
	var entries []struct {
		Path string `json:"path"`
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &entries) == nil {
		names := make([]string, len(entries))
		for i, e := range entries {
			names[i] = e.Type + " " + e.Path
		}
		return strings.Join(names, "\n"), true
	}
	var f struct {
		Type     string `json:"type"`
		Encoding string `json:"encoding"`
		Content  string `json:"content"`
		Size     int    `json:"size"`
		Target   string `json:"target"`
	}
	if json.Unmarshal(raw, &f) != nil {
		return "", false
	}
	switch f.Type {
	case "symlink":
		return "This is a symbolic link to " + f.Target + ".", true
	case "submodule":
		return "This is a submodule: a commit of another repository.", true
	case "file":
	default:
		return "", false
	}
	if f.Encoding == "none" { // so does GitHub answer for a file between 1 and 100 MB
		return "This file has " + strconv.Itoa(f.Size) + " bytes; GitHub answers the text of one of at most 1 MiB. Fetch it with git.", true
	}
	text, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(f.Content, "\n", "")) // its lines are broken
	switch {
	case err != nil || f.Encoding != "base64":
		return "", false
	case !utf8.Valid(text):
		return "This file is no text; it has " + strconv.Itoa(len(text)) + " bytes. Fetch it with git.", true
	}
	return string(text), true
}
