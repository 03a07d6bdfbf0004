//go:build tools

// Package kubernetes pins the programs of the local cluster that are built from
// Kubernetes' and etcd's own modules. k8s.io/kubernetes replaces its staging
// modules, and a dependent does not inherit replaces, so go.mod repeats them.
package kubernetes

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-proxy"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
