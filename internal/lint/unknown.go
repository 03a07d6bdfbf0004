package lint

import (
	"fmt"

	"github.com/messaginginbox/operator/internal/messenger"
)

var misspeltKey = &Rule{
	ID:       "misspelt-key",
	Severity: Error,
	Summary:  "A key of Messenger, a transport or a bus looks misspelt.",
	Why:      "Symfony refuses a key that it does not know, and what was meant is not declared.",
	Fix:      "Correct the key.",
	check: func(s *subject, report reporter) {
		reportUnrecognized(s.Unrecognized, report, func(key messenger.Unrecognized) bool { return key.Suggestion != "" })
	},
}

var unknownKey = &Rule{
	ID:       "unknown-key",
	Severity: Warning,
	Summary:  "A key of Messenger, a transport or a bus is none that Symfony 8.2 knows.",
	Why:      "Symfony refuses a key that it does not know. A later version may know it.",
	Fix:      "Remove the key, or move what a transport is told to its options.",
	check: func(s *subject, report reporter) {
		reportUnrecognized(s.Unrecognized, report, func(key messenger.Unrecognized) bool { return key.Suggestion == "" })
	},
}

var unknownOption = &Rule{
	ID:       "unknown-option",
	Severity: Warning,
	Summary:  "A transport has an option that Symfony's own transport of its type does not know.",
	Why:      "Symfony's own transports refuse the option when the first message is sent or received, and what was meant has its default.",
	Fix:      "Correct or remove the option. Where another package's transport takes the DSN, nothing is wrong.",
	check: func(s *subject, report reporter) {
		for _, transport := range s.Transports {
			reportUnrecognized(transport.Unrecognized(), report, func(messenger.Unrecognized) bool { return true })
		}
	},
}

func reportUnrecognized(all []messenger.Unrecognized, report reporter, wanted func(messenger.Unrecognized) bool) {
	for _, unrecognized := range all {
		if wanted(unrecognized) {
			report(unrecognized.At, unrecognized.Key, unrecognized.String())
		}
	}
}

var optionNotANumber = &Rule{
	ID:       "option-not-a-number",
	Severity: Error,
	Summary:  "An option that is a number holds something else.",
	Why:      "PHP takes a text that is no number for 0, or stops at it. A redeliver_timeout of 0 hands every message out again at once.",
	Fix:      "Write a number from 0, without a unit.",
	check: func(s *subject, report reporter) {
		for _, transport := range s.Transports {
			for _, option := range transport.NotNumbers() {
				report(option.Field.At, option.Field.Key, fmt.Sprintf("%s of %s is no number from 0", option.Name, transport.Name))
			}
		}
	},
}
