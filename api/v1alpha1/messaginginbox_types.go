package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MessagingInbox owns the contract of one consumer inbox: its table exists and
// has the right shape, its proofs are kept for as long as their messages can be
// redelivered, and no longer than that.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=inbox,categories=messaging
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Retention",type=string,JSONPath=`.status.retention.effective`
// +kubebuilder:printcolumn:name="Required",type=string,JSONPath=`.status.retention.requiredWithMargin`
// +kubebuilder:printcolumn:name="Rows",type=integer,JSONPath=`.status.table.rows`
// +kubebuilder:printcolumn:name="Next-Prune",type=string,JSONPath=`.status.pruning.nextRun`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MessagingInbox struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the team declares.
	// +required
	Spec MessagingInboxSpec `json:"spec"`
	// status is what the operator observed and decided.
	// +optional
	Status MessagingInboxStatus `json:"status,omitzero"`
}

// MessagingInboxList is a list of MessagingInbox.
//
// +kubebuilder:object:root=true
type MessagingInboxList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MessagingInbox `json:"items"`
}

// MessagingInboxSpec declares one inbox.
//
// +kubebuilder:validation:XValidation:rule="self.transports.all(t, !has(t.outbox) || (t.outbox != t.name && self.transports.exists(o, o.name == t.outbox)))",message="outbox must name another transport that is declared in spec.transports"
// +kubebuilder:validation:XValidation:rule="self.transports.all(t, !has(t.failureTransport) || (t.failureTransport != t.name && self.transports.exists(f, f.name == t.failureTransport)))",message="failureTransport must name another transport that is declared in spec.transports"
// +kubebuilder:validation:XValidation:rule="self.transports.all(t, !has(t.dispatchesAfterCurrentBus) || sets.contains(self.transports.filter(o, has(o.outbox)).map(o, o.name), t.dispatchesAfterCurrentBus))",message="each transport in dispatchesAfterCurrentBus must be declared in spec.transports and have an outbox: Symfony refuses to dispatch after the current bus to a transport without one"
type MessagingInboxSpec struct {
	// suspend makes the operator observe only: it changes no schema and prunes nothing.
	// +optional
	// +default=false
	Suspend bool `json:"suspend"`

	// database says how to reach the database whose transactions the handlers use.
	// +required
	Database DatabaseSpec `json:"database"`

	// table names the inbox table and its columns.
	// +optional
	// +default={}
	Table TableSpec `json:"table"`

	// schema says who owns the table's migrations.
	// +optional
	// +default={}
	Schema SchemaSpec `json:"schema"`

	// retention says how long a proof is kept.
	// +optional
	// +default={}
	Retention RetentionSpec `json:"retention"`

	// redelivery holds what is true of every transport unless it says otherwise itself.
	// +optional
	// +default={}
	Redelivery RedeliverySpec `json:"redelivery"`

	// transports are all the transports that matter to the inbox: those whose
	// messages it records, their outboxes and their failure transports.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=320
	Transports []Transport `json:"transports"`

	// requireFullCoverage makes Ready False while CoverageComplete is. Otherwise a
	// transport that the inbox does not protect is only a visible warning.
	// +optional
	// +default=false
	RequireFullCoverage bool `json:"requireFullCoverage"`

	// businessKeys are unique keys of the application's own tables that stop two
	// different messages from doing the same work twice: the inbox only knows one
	// message from another, not one payment from another.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	BusinessKeys []BusinessKey `json:"businessKeys,omitempty"`

	// pruning says when and how expired proofs are deleted.
	// +optional
	// +default={}
	Pruning PruningSpec `json:"pruning"`

	// drill says when the contract is proven on the real table.
	// +optional
	Drill DrillSpec `json:"drill,omitzero"`
}

// SecretKeyReference names one key of a Secret in the resource's own namespace.
type SecretKeyReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key within the Secret.
	// +optional
	// +default="url"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// DatabaseSpec says how to reach the database.
type DatabaseSpec struct {
	// urlSecretRef names the connection URL: a libpq URL, libpq keywords, or a
	// Doctrine DATABASE_URL such as postgresql://user:password@host/app?serverVersion=16.
	// +required
	URLSecretRef SecretKeyReference `json:"urlSecretRef"`

	// migrationURLSecretRef names the URL of a role that may change the schema.
	// Default: urlSecretRef.
	// +optional
	MigrationURLSecretRef *SecretKeyReference `json:"migrationURLSecretRef,omitempty"`

	// pruningURLSecretRef names the URL of a role that may SELECT from and DELETE
	// from the inbox table, which is all that pruning needs. Default: urlSecretRef.
	// +optional
	PruningURLSecretRef *SecretKeyReference `json:"pruningURLSecretRef,omitempty"`

	// handlerURLSecretRefs name the connections that the handlers write through.
	// The inbox protects nothing unless each is this very database.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=32
	HandlerURLSecretRefs []SecretKeyReference `json:"handlerURLSecretRefs,omitempty"`

	// caSecretRef names a PEM bundle that the server's certificate is verified
	// against, for the operator and for its Jobs alike. Default: the URL's sslrootcert,
	// else the system's certificates.
	// +optional
	CASecretRef *SecretKeyReference `json:"caSecretRef,omitempty"`

	// schema is the PostgreSQL schema of the inbox table.
	// +optional
	// +default="public"
	Schema Identifier `json:"schema"`
}

// Identifier is the name of a PostgreSQL object: 1 to 63 bytes, no NUL. Any
// other character is allowed, since the operator always quotes.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 63",message="a PostgreSQL identifier has at most 63 bytes"
// +kubebuilder:validation:XValidation:rule="!self.contains('\\u0000')",message="a PostgreSQL identifier cannot contain a NUL character"
type Identifier string

// TableSpec names the inbox table and its columns.
type TableSpec struct {
	// name of the table.
	// +optional
	// +default="messenger_inbox"
	Name Identifier `json:"name"`

	// columns maps the inbox's three facts to the table's columns.
	// +optional
	// +default={}
	Columns ColumnsSpec `json:"columns"`

	// timeZone in which a processedAt column of type timestamp without time zone is
	// written: an IANA name. It has no effect on a timestamp with time zone.
	// +optional
	// +default="UTC"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone"`

	// timestampIndex is the name of the index on processedAt. Set it when the
	// application maps that index too, so that both mean the same one.
	// Default: the table's name followed by _processed_at_idx.
	// +optional
	TimestampIndex Identifier `json:"timestampIndex,omitempty"`
}

// ColumnsSpec maps the inbox's facts to columns.
//
// +kubebuilder:validation:XValidation:rule="!has(self.transport) || !has(self.messageID) || !has(self.processedAt) || (self.transport != self.messageID && self.messageID != self.processedAt && self.transport != self.processedAt)",message="transport, messageID and processedAt must be three different columns"
type ColumnsSpec struct {
	// transport is the column with the transport's name.
	// +optional
	// +default="transport"
	Transport Identifier `json:"transport"`
	// messageID is the column with the message's id.
	// +optional
	// +default="message_id"
	MessageID Identifier `json:"messageID"`
	// processedAt is the column with the time at which the message was handled.
	// +optional
	// +default="processed_at"
	ProcessedAt Identifier `json:"processedAt"`
}

// SchemaPolicy says who applies the table's migrations.
//
// +kubebuilder:validation:Enum=Apply;Plan;Observe
type SchemaPolicy string

const (
	// SchemaPolicyApply lets the operator apply its additive plan at once.
	SchemaPolicyApply SchemaPolicy = "Apply"
	// SchemaPolicyPlan makes the operator wait until approvedPlan equals the plan's digest.
	SchemaPolicyPlan SchemaPolicy = "Plan"
	// SchemaPolicyObserve leaves the schema to the application's own migrations.
	SchemaPolicyObserve SchemaPolicy = "Observe"
)

// SchemaSpec says who owns the table's migrations.
type SchemaSpec struct {
	// policy is Apply (the operator applies its additive plan), Plan (it waits for
	// approvedPlan) or Observe (the application's migrations own the table).
	// +optional
	// +default="Apply"
	Policy SchemaPolicy `json:"policy"`
	// approvedPlan is the digest of the plan, as in status.schema.plan.digest, that
	// may be applied under policy Plan.
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	ApprovedPlan string `json:"approvedPlan,omitempty"`
}

// RetentionSpec says how long a proof is kept.
type RetentionSpec struct {
	// period for which a proof is kept, counted from processedAt.
	// +optional
	// +default="168h"
	Period Duration `json:"period"`
	// marginPercent is added to the required window before the period is compared with it.
	// +optional
	// +default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	MarginPercent int32 `json:"marginPercent"`
	// applicationPeriod is the retention with which the application itself prunes the
	// table (Symfony's default is 168h). The shorter of the two protects. Leave it out
	// only when the application does not prune.
	// +optional
	ApplicationPeriod *Duration `json:"applicationPeriod,omitempty"`
	// maxTableSize is the size of the table with its indexes, such as 20Gi, beyond which
	// the operator warns when the table will reach it at the current growth and
	// retention. It only warns: a proof is never pruned for it.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="maxTableSize must be more than 0"
	MaxTableSize *resource.Quantity `json:"maxTableSize,omitempty"`
}

// BusinessKey is a unique key of one of the application's tables.
type BusinessKey struct {
	// table of the key, in spec.database.schema.
	// +required
	Table Identifier `json:"table"`
	// columns of the key, in any order.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Columns []Identifier `json:"columns"`
}

// DrillSpec says when the contract is proven.
type DrillSpec struct {
	// schedule is a cron expression of five fields, or a descriptor such as @daily, in
	// spec.pruning.timeZone. With a schedule, a drill is also made whenever the table or
	// its connections change. A drill writes a few records to the table, under the
	// transport name messaginginbox.drill, and removes them at once; the role of
	// database.urlSecretRef needs SELECT, INSERT and DELETE for it. Default: no drills.
	// +optional
	Schedule *Schedule `json:"schedule,omitempty"`
}
