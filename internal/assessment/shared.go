package assessment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/dbschema"
)

// TableID tells one table from another. It is made of names and oids only, so that it
// does not depend on the host name and the role that a resource connects with. Copies of
// one database on two servers share it: to take them for one table is the safe mistake.
func TableID(database string, contract dbschema.Contract, observed dbschema.Observed) string {
	if observed.OID == 0 {
		return ""
	}
	digest := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d", database, contract.Schema, contract.Table, observed.OID))
	return hex.EncodeToString(digest[:8])
}

// TooShortForOthers says whose messages lose their proofs when a resource prunes by its
// own retention: pruning deletes by age, whatever the transport. Empty: nobody's.
func TooShortForOthers(inbox *v1alpha1.MessagingInbox, all []v1alpha1.MessagingInbox) string {
	if inbox.Status.Schema == nil || inbox.Status.Schema.TableID == "" {
		return ""
	}
	period := inbox.Spec.Retention.Period.Duration.Duration
	for i := range all {
		other := &all[i]
		if other.UID == inbox.UID || other.Status.Schema == nil || other.Status.Schema.TableID != inbox.Status.Schema.TableID || other.Status.Retention == nil {
			continue
		}
		required := other.Status.Retention.RequiredWithMargin
		switch {
		case required == nil:
			return fmt.Sprintf("MessagingInbox %s/%s names the same table, and nothing bounds how late its messages can come back. Declare all transports of the table in one resource.", other.Namespace, other.Name)
		case required.Duration > period:
			return fmt.Sprintf("MessagingInbox %s/%s names the same table and needs its proofs for %s, but spec.retention.period is %s here. Declare all transports of the table in one resource, or set it to %s or more.",
				other.Namespace, other.Name, Human(required.Duration), Human(period), Human(roundUpToHours(required.Duration)))
		}
	}
	return ""
}

func roundUpToHours(d time.Duration) time.Duration {
	if rounded := d.Truncate(time.Hour); rounded == d {
		return d
	}
	return d.Truncate(time.Hour) + time.Hour
}
