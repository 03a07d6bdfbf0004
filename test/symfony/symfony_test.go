package symfony

import (
	"strings"
	"testing"
)

// What PHP 8's serialize makes of it, written down by hand.
func TestAnEnvelopeIsWhatPHPMakesOfIt(t *testing.T) {
	const want = "O:36:\"Symfony\\Component\\Messenger\\Envelope\":2:{s:44:\"\x00Symfony\\Component\\Messenger\\Envelope\x00stamps\";a:1:{" +
		"s:48:\"Symfony\\Component\\Messenger\\Stamp\\MessageIdStamp\";a:1:{i:0;O:48:\"Symfony\\Component\\Messenger\\Stamp\\MessageIdStamp\":1:{" +
		"s:52:\"\x00Symfony\\Component\\Messenger\\Stamp\\MessageIdStamp\x00id\";s:3:\"5-a\";}}}" +
		"s:45:\"\x00Symfony\\Component\\Messenger\\Envelope\x00message\";O:17:\"App\\Message\\Order\":1:{s:4:\"text\";s:3:\"a'b\";}}"
	if got := Envelope("5-a"); got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

func TestAMessageAsRedisKeepsIt(t *testing.T) {
	headers, body := PHP("5-a")
	if headers != "[]" || !strings.HasPrefix(body, `O:36:\"Symfony\\Component\\Messenger\\Envelope\":2:{s:44:\"\0Symfony\\`) {
		t.Errorf("headers %s, body %s", headers, body)
	}
	if got := Entry("[]", "a\x00b"); got != `{"body":"a\u0000b","headers":[]}` {
		t.Errorf("entry %s", got)
	}
}
