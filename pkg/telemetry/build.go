package telemetry

import (
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// Build is what this program was built from.
type Build struct {
	// Version is the module's version, or "devel".
	Version string
	// Revision is the commit, with + behind it if files were changed; "unknown"
	// if it was not built in a repository.
	Revision string
	// Go is the version of the compiler.
	Go string
}

// ReadBuild reads it from the program itself.
func ReadBuild() Build {
	b := Build{Version: "devel", Revision: "unknown", Go: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	changed := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+"
		}
	}
	b.Revision += changed
	return b
}

// buildInfo is a constant, for joining with what changed after a deployment.
func buildInfo() prometheus.Collector {
	b := ReadBuild()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "likectl_build_info", Help: "Always 1; the labels say what this program was built from.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "go": b.Go},
	}, func() float64 { return 1 })
}
