package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"likectl/benchmarks/result"
)

// The size of a plot.
const width, height = 18 * vg.Centimeter, 8 * vg.Centimeter

// line is one curve.
type line struct {
	name   string
	points plotter.XYs
	dots   bool
}

// chart is one plot.
type chart struct {
	title, x, y string
	logX, logY  bool
	lines       []line
}

// svg draws the chart, without the XML declaration, so that it fits in HTML.
func (c chart) svg() (string, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.Add(plotter.NewGrid())
	p.Legend.Top, p.Legend.Left = true, true
	for i, l := range c.lines {
		points := l.points
		if c.logX || c.logY {
			points = positive(points, c.logX, c.logY)
		}
		if len(points) == 0 {
			continue
		}
		drawn, err := plotter.NewLine(points)
		if err != nil {
			return "", fmt.Errorf("draw %s: %w", l.name, err)
		}
		drawn.Color, drawn.Width = plotutil.Color(i), vg.Points(1.5)
		p.Add(drawn)
		p.Legend.Add(l.name, drawn)
		if l.dots {
			dots, err := plotter.NewScatter(points)
			if err != nil {
				return "", fmt.Errorf("draw %s: %w", l.name, err)
			}
			dots.Color, dots.Shape = plotutil.Color(i), draw.CircleGlyph{}
			p.Add(dots)
		}
	}
	if c.logX {
		logarithmic(&p.X)
	}
	if c.logY {
		logarithmic(&p.Y)
	} else {
		p.Y.Min = min(0, p.Y.Min)
	}
	p.BackgroundColor = color.White
	canvas := vgsvg.New(width, height)
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", fmt.Errorf("draw %s: %w", c.title, err)
	}
	if i := bytes.Index(b.Bytes(), []byte("<svg")); i > 0 {
		b.Next(i)
	}
	return b.String(), nil
}

// logarithmic makes an axis so, with room around a single value. One without values,
// whose bounds are infinite, stays as it is.
func logarithmic(a *plot.Axis) {
	if a.Min <= 0 || math.IsInf(a.Min, 0) || math.IsInf(a.Max, 0) {
		return
	}
	if a.Min == a.Max {
		a.Min, a.Max = a.Min/2, a.Max*2
	}
	a.Scale, a.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
}

// positive leaves out what a logarithm cannot show.
func positive(in plotter.XYs, x, y bool) plotter.XYs {
	out := make(plotter.XYs, 0, len(in))
	for _, p := range in {
		if (!x || p.X > 0) && (!y || p.Y > 0) {
			out = append(out, p)
		}
	}
	return out
}

// distribution shows latencies by how rare they are: the x of quantile q is
// 1/(1-q), so that 90, 99 and 99.9 % are as far from each other.
func distribution(runs []result.Run) (chart, error) {
	c := chart{title: "Latency by quantile", x: "1 / (1 - quantile): 10 is P90, 100 is P99", y: "ms", logX: true, logY: true}
	for i := range runs {
		for _, k := range runs[i].Kinds {
			h, err := k.Latency.Histogram()
			if err != nil {
				return c, err
			}
			l := line{name: named(runs, i, k.Name)}
			for n := 1.0; n <= max(1, float64(h.TotalCount())); n *= 1.3 {
				l.points = append(l.points, plotter.XY{X: n, Y: float64(h.ValueAtQuantile(100*(1-1/n))) / 1000})
			}
			c.lines = append(c.lines, l)
		}
	}
	return c, nil
}

// named returns a curve's name: with the rate where there are several runs.
func named(runs []result.Run, i int, kind string) string {
	if len(runs) == 1 {
		return kind
	}
	return fmt.Sprintf("%s, %.0f/s", kind, runs[i].Achieved)
}

// overTime shows a run second by second.
func overTime(r *result.Run) []chart {
	latency := chart{title: "Latency by second", x: "s", y: "ms", logY: true, lines: []line{{name: "P50"}, {name: "P99"}}}
	rate := chart{title: "Answers by second", x: "s", y: "per second", lines: []line{{name: "as wanted"}, {name: "failed"}}}
	cpu := chart{title: "Processors", x: "s", y: "cores"}
	log := chart{title: "The database's log", x: "s", y: "per second", logY: true, lines: []line{{name: "bytes"}, {name: "flushes"}}}
	byName := map[string]int{}
	for _, p := range r.Series {
		add := func(c *chart, i int, y float64) {
			c.lines[i].points = append(c.lines[i].points, plotter.XY{X: p.At, Y: y})
		}
		add(&latency, 0, p.P50)
		add(&latency, 1, p.P99)
		add(&rate, 0, float64(p.OK))
		add(&rate, 1, float64(p.Failed))
		add(&log, 0, float64(p.Log))
		add(&log, 1, float64(p.Flushes))
		for name, used := range p.CPU {
			i, ok := byName[name]
			if !ok {
				i = len(cpu.lines)
				byName[name] = i
				cpu.lines = append(cpu.lines, line{name: name})
			}
			add(&cpu, i, used)
		}
	}
	charts := []chart{latency, rate}
	if len(cpu.lines) > 0 {
		charts = append(charts, cpu)
	}
	if r.Server.Log > 0 {
		charts = append(charts, log)
	}
	return charts
}

// knee shows what rates cost in latency, where runs have different ones.
func knee(runs []result.Run) (chart, bool) {
	c := chart{title: "Rate and latency", x: "answers per second", y: "P99, ms", logY: true}
	rates := map[float64]bool{}
	byKind := map[string]plotter.XYs{}
	for i := range runs {
		rates[math.Round(runs[i].Wanted)] = true
		for _, k := range runs[i].Kinds {
			byKind[k.Name] = append(byKind[k.Name], plotter.XY{X: runs[i].Achieved, Y: k.Latency.P99})
		}
	}
	for _, k := range workloadOrder(byKind) {
		points := byKind[k]
		slices.SortFunc(points, func(a, b plotter.XY) int { return int(math.Copysign(1, a.X-b.X)) })
		c.lines = append(c.lines, line{name: k, points: points, dots: true})
	}
	return c, len(rates) > 2
}

func workloadOrder(m map[string]plotter.XYs) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
