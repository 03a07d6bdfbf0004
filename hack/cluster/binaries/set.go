// Package binaries builds the programs of the cluster from the Go modules that
// the folders kubernetes and containerd pin, once per version and machine.
package binaries

// kubernetesVersion is the version of k8s.io/kubernetes in kubernetes/go.mod, stamped into its programs.
const (
	kubernetesVersion = "v1.37.2"
	kubernetesMajor   = "1"
	kubernetesMinor   = "37"
)

const strip = "-s -w"

// Binary is one program: where its module is pinned, what to build, and its name.
type Binary struct {
	Name    string
	Folder  string // below the source folder
	Package string
	LDFlags string
}

// Envtest lists the programs that controller-runtime's envtest looks for in KUBEBUILDER_ASSETS.
func Envtest() []Binary {
	return []Binary{
		kubernetes("kube-apiserver"),
		{Name: "etcd", Folder: "kubernetes", Package: "go.etcd.io/etcd/server/v3", LDFlags: strip},
		kubernetes("kubectl"),
	}
}

// All lists the programs of a whole node.
func All() []Binary {
	return append(Envtest(),
		kubernetes("kube-controller-manager"),
		kubernetes("kube-scheduler"),
		kubernetes("kube-proxy"),
		kubernetes("kubelet"),
		containerd("containerd"),
		containerd("containerd-shim-runc-v2"),
		containerd("ctr"),
		Binary{Name: "pause", Folder: ".", Package: "./pause", LDFlags: strip},
	)
}

func kubernetes(name string) Binary {
	const version = " -X k8s.io/component-base/version."
	return Binary{
		Name:    name,
		Folder:  "kubernetes",
		Package: "k8s.io/kubernetes/cmd/" + name,
		LDFlags: strip + version + "gitVersion=" + kubernetesVersion + version + "gitMajor=" + kubernetesMajor + version + "gitMinor=" + kubernetesMinor,
	}
}

func containerd(name string) Binary {
	return Binary{Name: name, Folder: "containerd", Package: "github.com/containerd/containerd/v2/cmd/" + name, LDFlags: strip}
}
