// Command controlplane is a whole Kubernetes in one executable, for tests and trials.
//
// It is the program it is called as: link or copy it to etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kubelet or kubectl. Called by any other name, it takes
// that name as its first argument. The programs share nearly all of their code, so that the six
// together are hardly larger than the largest of them.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the client library
	_ "k8s.io/component-base/metrics/prometheus/version"  // the metric that names the version
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var programs = map[string]func(arguments []string) int{
	"etcd":                    etcd,
	"kube-apiserver":          run(apiserver.NewAPIServerCommand),
	"kube-controller-manager": run(manager.NewControllerManagerCommand),
	"kube-scheduler":          run(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubelet":                 run(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	"kubectl":                 run(kubectl.NewDefaultKubectlCommand),
}

func main() {
	arguments := os.Args
	if _, known := programs[filepath.Base(arguments[0])]; !known {
		arguments = arguments[1:]
	}
	if len(arguments) > 0 {
		if program, known := programs[filepath.Base(arguments[0])]; known {
			os.Args = arguments // kubectl and cobra read them there
			os.Exit(program(arguments))
		}
	}
	names := make([]string, 0, len(programs))
	for name := range programs {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintln(os.Stderr, "usage: controlplane PROGRAM ...; PROGRAM is one of", strings.Join(names, ", "))
	os.Exit(2)
}

func run(command func() *cobra.Command) func([]string) int {
	return func([]string) int { return cli.Run(command()) }
}

func etcd(arguments []string) int {
	etcdmain.Main(arguments) // ends the process itself when something is wrong
	return 0
}
