package waiting

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/messaginginbox/operator/test/symfony"
)

const id = "0f9a3b5c7d1e2f4a6b8c0d1e2f3a4b5c"

// envelope is one that PHP serialized.
var envelope = symfony.Envelope(id)

func TestAMessageIsIdentified(t *testing.T) {
	headers, body := symfony.JSON(id)
	for name, message := range map[string]struct {
		headers, body string
		want          []string
	}{
		"by Symfony's JSON headers": {headers, body, []string{id}},
		"by two stamps":             {`{"X-Message-Stamp-App\\MessageIdStamp":"[{\"id\":\"a\"},{\"id\":\"b\"}]"}`, `{}`, []string{"a", "b"}},
		"by a body that PHP serialized, as the doctrine transport keeps it": {`[]`, symfony.AddSlashes(envelope), []string{id}},
		"by such a body without slashes":                                    {`[]`, envelope, []string{id}},
		"by such a body in base64": {`[]`, base64.StdEncoding.EncodeToString([]byte(symfony.AddSlashes(strings.ReplaceAll(envelope, "a'b", "a\xffb")))),
			[]string{id}},
		"by a number in a stamp":                               {`{"X-Message-Stamp-App\\MessageIdStamp":"[{\"id\":5}]"}`, `{}`, []string{"5"}},
		"by an object in a stamp":                              {`{"X-Message-Stamp-App\\MessageIdStamp":"[{\"id\":{\"uid\":\"a\"}}]"}`, `{}`, []string{"a"}},
		"by a stamp of PHP with other properties":              {`[]`, `O:14:"MessageIdStamp":4:{s:4:"none";N;s:5:"count";i:7;s:4:"list";a:1:{i:0;b:1;}s:2:"id";s:1:"a";}`, []string{"7", "a"}},
		"by a uid of PHP":                                      {`[]`, "O:14:\"MessageIdStamp\":1:{s:2:\"id\";O:28:\"Symfony\\Component\\Uid\\UuidV7\":1:{s:6:\"\x00*\x00uid\";s:1:\"a\";}}", []string{"a"}},
		"by an id of more than 255 bytes":                      {`{"message_id":"` + strings.Repeat("é", 255) + `"}`, `{}`, []string{strings.Repeat("é", 255)}},
		"by a plain header that is a number":                   {`{"message_id":5}`, `{}`, []string{"5"}},
		"by a plain header that is a list":                     {`{"message_id":["a","b"]}`, `{}`, []string{"a", "b"}},
		"not by a list of PHP without end":                     {`[]`, `O:14:"MessageIdStamp":1:{s:2:"id";a:9:{i:0;}`, nil},
		"by a plain header":                                    {`{"message_id":"order-5"}`, `{"order":5}`, []string{"order-5"}},
		"by a plain header of another spelling":                {`{"X-Message-Id":"order-5"}`, `{}`, []string{"order-5"}},
		"by a plain body":                                      {``, " order-5\n", []string{"order-5"}},
		"not by another stamp":                                 {`{"X-Message-Stamp-Symfony\\Component\\Messenger\\Stamp\\TransportMessageIdStamp":"[{\"id\":\"7\"}]"}`, `{}`, nil},
		"not by headers that are no JSON":                      {`{"message_id": `, `{}`, nil},
		"not by headers that are a list":                       {`["message_id"]`, `{}`, nil},
		"not by a stamp that is no JSON":                       {`{"X-Message-Stamp-App\\MessageIdStamp":"[{"}`, `{}`, nil},
		"not by a stamp without text":                          {`{"X-Message-Stamp-App\\MessageIdStamp":"[{\"id\":null}]"}`, `{}`, nil},
		"not by a body of invalid UTF-8":                       {``, "\xff\xfe", nil},
		"not by a body with a length that lies":                {`[]`, strings.Replace(envelope, "s:32:", "s:99999:", 1), nil},
		"not by a body that ends in the middle":                {`[]`, envelope[:strings.Index(envelope, id)+9] + "}", nil},
		"not by an id longer than any column":                  {`{"message_id":"` + strings.Repeat("x", 2705) + `"}`, `{}`, nil},
		"not by an id with a NUL, which PostgreSQL cannot say": {`{"message_id":"a\u0000b"}`, `{}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Identify([]byte(message.headers), []byte(message.body)); !slices.Equal(got, message.want) {
				t.Errorf("ids %q, want %q", got, message.want)
			}
		})
	}
}

func TestAnEntryOfARedisStreamIsUnwrapped(t *testing.T) {
	message := `{"body":"{}","headers":{"X-Message-Stamp-App\\MessageIdStamp":"[{\"id\":\"a\"}]"}}`
	for name, value := range map[string]string{
		"as JSON":                          message,
		"as PHP's serialized text of JSON": `s:` + "86" + `:"` + message + `";`,
	} {
		if got := identifyEntry(map[string]any{"message": strings.Replace(value, "s:86", "s:"+strconv.Itoa(len(message)), 1)}); !slices.Equal(got, []string{"a"}) {
			t.Errorf("%s: ids %q", name, got)
		}
	}
	if got := identifyEntry(map[string]any{"message": symfony.Entry(symfony.PHP(id))}); !slices.Equal(got, []string{id}) {
		t.Errorf("with a body that PHP serialized: ids %q", got)
	}
	if got := identifyEntry(map[string]any{"message_id": "b", "amount": "5"}); !slices.Equal(got, []string{"b"}) {
		t.Errorf("by a plain field: ids %q", got)
	}
}

func FuzzIdentify(f *testing.F) {
	f.Add([]byte(`{"message_id":"a"}`), []byte(envelope))
	f.Fuzz(func(t *testing.T, headers, body []byte) {
		for _, found := range Identify(headers, body) {
			if found == "" || len(found) > maxID {
				t.Errorf("id %q", found)
			}
		}
	})
}
