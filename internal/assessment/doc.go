// Package assessment turns a MessagingInbox and what was observed into conditions
// and status. Every function is pure: the controller and the command line call the
// same ones, so that "inbox check" and the status cannot disagree.
package assessment
