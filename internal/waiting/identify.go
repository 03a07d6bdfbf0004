// Package waiting finds out which messages still wait in failure transports and
// outboxes: the ids whose proofs must not be pruned yet, however old they are.
package waiting

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// stampHeader is how Symfony's serializer names the header of a stamp; the class follows.
const stampHeader = "X-Message-Stamp-"

// stampClass is the last part of the class of the stamp that carries the message's id.
const stampClass = "MessageIdStamp"

// maxID is the longest id in bytes that a record can have: its unique key is a btree
// index, which takes entries of up to about 2,700 bytes.
const maxID = 2704

// Identify returns the ids of one message from its headers and body as the transport
// keeps them. It knows three forms: the stamps that Symfony writes as JSON into a header,
// those of an envelope that PHP serialized into the body, and a plain header or body. An
// id too many does no harm, since it only holds a proof.
func Identify(headers, body []byte) []string {
	ids := fromHeaders(headers)
	if len(ids) == 0 {
		ids = fromEnvelope(body)
	}
	if len(ids) == 0 {
		ids = plain(body)
	}
	return ids
}

// fromHeaders reads a JSON object of headers. What is no such object has no ids.
func fromHeaders(headers []byte) []string {
	var all map[string]json.RawMessage
	if json.Unmarshal(headers, &all) != nil {
		return nil
	}
	var ids []string
	for name, raw := range all {
		switch {
		case strings.HasPrefix(name, stampHeader) && isStamp(name[len(stampHeader):]):
			var text string
			if json.Unmarshal(raw, &text) == nil {
				ids = appendScalars(ids, []byte(text))
			}
		case plainHeaders[strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))]:
			ids = appendScalars(ids, raw)
		}
	}
	return ids
}

// plainHeaders carry an id as it is, by their names without dashes and underscores.
var plainHeaders = map[string]bool{"messageid": true, "xmessageid": true, "id": true}

func isStamp(class string) bool {
	return class[strings.LastIndexByte(class, '\\')+1:] == stampClass
}

// appendScalars appends all texts and numbers of a JSON value, however deep: whatever the
// property of a stamp is called, and also when it is an object, they are ids. What is no
// JSON has none.
func appendScalars(ids []string, encoded []byte) []string {
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return ids
	}
	for open := []any{value}; len(open) > 0; {
		last := open[len(open)-1]
		open = open[:len(open)-1]
		switch value := last.(type) {
		case string:
			ids = appendID(ids, value)
		case json.Number:
			ids = appendID(ids, value.String())
		case []any:
			// The last one is taken first.
			for i := len(value) - 1; i >= 0; i-- {
				open = append(open, value[i])
			}
		case map[string]any:
			for _, inner := range value {
				open = append(open, inner)
			}
		}
	}
	return ids
}

// stampStart is where PHP's serialized form of a stamp object begins; the number of its
// properties is in it.
var stampStart = regexp.MustCompile(`O:\d+:"(?:[^"]*\\)?` + stampClass + `":(\d+):\{`)

// fromEnvelope reads a body that PHP's serialize() made. Symfony's doctrine transport adds
// slashes to it, and encodes in base64 what is not UTF-8.
func fromEnvelope(body []byte) []string {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[len(body)-1] != '}' {
		if decoded, err := base64.StdEncoding.DecodeString(string(body)); err == nil {
			body = decoded
		}
	}
	var ids []string
	for _, form := range [][]byte{body, stripSlashes(body)} {
		for _, found := range stampStart.FindAllSubmatchIndex(form, -1) {
			properties, err := strconv.Atoi(string(form[found[2]:found[3]]))
			if err == nil {
				ids = append(ids, valuesOf(form[found[1]:], properties)...)
			}
		}
		if len(ids) > 0 {
			return ids
		}
	}
	return nil
}

// stripSlashes is PHP's stripslashes.
func stripSlashes(text []byte) []byte {
	if !bytes.ContainsRune(text, '\\') {
		return text
	}
	stripped := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			if i++; text[i] == '0' {
				stripped = append(stripped, 0)
				continue
			}
		}
		stripped = append(stripped, text[i])
	}
	return stripped
}

// plain takes a body that is nothing but one word for an id.
func plain(body []byte) []string {
	text := strings.TrimSpace(string(body))
	if strings.ContainsAny(text, " \t\r\n{}[]\"<>") {
		return nil
	}
	return appendID(nil, text)
}

func appendID(ids []string, id string) []string {
	if id == "" || len(id) > maxID || !utf8.ValidString(id) || strings.ContainsRune(id, 0) {
		return ids
	}
	return append(ids, id)
}
