//! The samples as a drawing for the docs: one graph below the other, over the same minutes.
//!
//! As the graphs of the console, it is SVG that is written by hand. Those have no axes, because a page with a table is
//! around them; this one stands alone.

use std::fmt::Write as _;

use super::plan::{Event, Plan};
use super::samples::Sample;

const WIDTH: f64 = 860.0;
/// Where graphs begin and end, and the numbers are left of them.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 846.0;
const TOP: f64 = 64.0;
/// The height of a graph, and of one with its caption.
const HEIGHT: f64 = 84.0;
const STEP: f64 = 122.0;

/// The colours are those of the console, in the light and in the dark.
const STYLE: &str = "
text { font: 12px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #46544c }
.title { font-size: 16px; font-weight: 600 } .caption { font-size: 13px; font-weight: 600 }
.page { fill: #fbfbf8 } .graph { fill: #ffffff; stroke: #d5dbd7 } .warm { fill: #eef1ef } .away { fill: #f7dfae }
.restart { stroke: #8a958f; stroke-dasharray: 3 3 } .line { fill: none; stroke-width: 1.4; stroke-linejoin: round }
.first { stroke: #1f6f5c } .second { stroke: #b3541e } text.first { stroke: none; fill: #1f6f5c } text.second { stroke: none; fill: #b3541e }
@media (prefers-color-scheme: dark) {
text { fill: #c3ccc7 } .page { fill: #161b19 } .graph { fill: #1d2421; stroke: #39433e } .warm { fill: #26302b } .away { fill: #5c4714 }
.restart { stroke: #7d8983 } .first { stroke: #5fc7a9 } .second { stroke: #f0a06a } text.first { fill: #5fc7a9 } text.second { fill: #f0a06a }
}
";

struct Line {
    name: &'static str,
    value: fn(&Sample) -> f64,
}

struct Graph {
    unit: &'static str,
    /// Whether the axis has a decade for each step, from 0.1 on.
    is_logarithmic: bool,
    lines: &'static [Line],
}

const GRAPHS: &[Graph] = &[
    Graph {
        unit: "MiB",
        is_logarithmic: false,
        lines: &[Line { name: "resident memory", value: |it| it.memory_mib }],
    },
    Graph {
        unit: "MiB",
        is_logarithmic: false,
        lines: &[Line { name: "data directory", value: |it| it.disk_mib }],
    },
    Graph {
        unit: "",
        is_logarithmic: false,
        lines: &[
            Line { name: "open files beside packs", value: |it| it.files },
            Line { name: "packs that are open", value: |it| it.packs },
            Line { name: "threads", value: |it| it.threads },
        ],
    },
    Graph {
        unit: "ms",
        is_logarithmic: true,
        lines: &[
            Line { name: "p50 of check-ins", value: |it| it.p50_ms },
            Line { name: "p99 of check-ins", value: |it| it.p99_ms },
        ],
    },
    Graph {
        unit: "ms",
        is_logarithmic: false,
        lines: &[Line { name: "computing time of a check-in", value: |it| it.computing_ms }],
    },
    Graph {
        unit: "",
        is_logarithmic: false,
        lines: &[Line { name: "load of the machine, by all that ran on it", value: |it| it.load }],
    },
];

/// Draws the samples; the description says in words what the drawing shows.
pub(super) fn draw(plan: &Plan, samples: &[Sample], description: &str) -> String {
    let height = TOP + STEP * f64::from(u32::try_from(GRAPHS.len()).unwrap()) + 12.0;
    let minutes = plan.time.as_secs() / 60;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"title text\">\n<title id=\"title\">A soak of {minutes} minutes</title>\n<desc id=\"text\">{}</desc>\n<style>{STYLE}</style>\n<rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\" rx=\"10\"/>\n<text class=\"title\" x=\"{LEFT}\" y=\"28\">A soak of {minutes} minutes</text>\n<text x=\"{LEFT}\" y=\"46\">Grey: warm-up. Dashed: a restart, by SIGTERM or kill -9. Yellow: the remote is out of reach.</text>\n",
        escaped(description)
    );
    let mut top = TOP;
    for graph in GRAPHS {
        draw_graph(&mut svg, plan, samples, graph, top + 24.0);
        top += STEP;
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_graph(svg: &mut String, plan: &Plan, samples: &[Sample], graph: &Graph, top: f64) {
    let x = |seconds: f64| LEFT + (RIGHT - LEFT) * (seconds / plan.time.as_secs_f64()).min(1.0);
    let axis = Axis::of(graph, samples);
    let y = |value: f64| top + HEIGHT - HEIGHT * axis.share(value);
    let bottom = top + HEIGHT;
    let width = RIGHT - LEFT;
    writeln!(
        svg,
        "<rect class=\"graph\" x=\"{LEFT}\" y=\"{top}\" width=\"{width}\" height=\"{HEIGHT}\"/>"
    )
    .unwrap();
    let mut area = |class: &str, from: f64, to: f64| {
        let (from, width) = (x(from), x(to) - x(from));
        writeln!(svg, "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{HEIGHT}\"/>").unwrap();
    };
    area("warm", 0.0, plan.warm_up.as_secs_f64());
    let mut away = None;
    for (at, event) in &plan.events {
        match (event, away) {
            (Event::Disconnect, _) => away = Some(at.as_secs_f64()),
            (Event::Reconnect, Some(from)) => area("away", from, at.as_secs_f64()),
            _ => {}
        }
    }
    for (at, _) in plan.events.iter().filter(|it| matches!(it.1, Event::Restart(_))) {
        let x = x(at.as_secs_f64());
        writeln!(svg, "<path class=\"restart\" d=\"M{x:.1} {top}V{bottom}\"/>").unwrap();
    }
    let mut at = LEFT;
    for (line, class) in graph.lines.iter().zip(["first", "second"]) {
        for life in samples.chunk_by(|a, b| a.life == b.life) {
            let point = |it: &Sample| format!("{:.1},{:.1}", x(it.at), y((line.value)(it)));
            let points: Vec<String> = life.iter().map(point).collect();
            writeln!(svg, "<polyline class=\"line {class}\" points=\"{}\"/>", points.join(" "))
                .unwrap();
        }
        let unit = if graph.unit.is_empty() { String::new() } else { format!(", {}", graph.unit) };
        let above = top - 7.0;
        writeln!(
            svg,
            "<text class=\"caption {class}\" x=\"{at}\" y=\"{above}\">{}{unit}</text>",
            line.name
        )
        .unwrap();
        at += 190.0;
    }
    for value in axis.labels() {
        let (x, y) = (LEFT - 8.0, y(value) + 4.0);
        writeln!(svg, "<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{value}</text>").unwrap();
    }
    for quarter in 0..=4_u32 {
        let minutes = plan.time.as_secs_f64() / 60.0 * f64::from(quarter) / 4.0;
        let (x, y) = (x(minutes * 60.0), bottom + 13.0);
        let anchor = ["start", "middle", "middle", "middle", "end"][quarter as usize];
        writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{minutes:.0} min</text>"
        )
        .unwrap();
    }
}

/// The scale of a graph: from nothing, or in decades.
struct Axis {
    least: f64,
    most: f64,
    is_logarithmic: bool,
}

impl Axis {
    fn of(graph: &Graph, samples: &[Sample]) -> Self {
        let value =
            |it: &Sample| graph.lines.iter().map(|line| (line.value)(it)).fold(0.0, f64::max);
        let most = samples.iter().map(value).fold(0.0, f64::max).max(0.1);
        let is_logarithmic = graph.is_logarithmic;
        match is_logarithmic {
            true => {
                Self { least: 0.1, most: 10_f64.powf(most.log10().ceil()).max(1.0), is_logarithmic }
            }
            false => Self { least: 0.0, most: rounded_up(most), is_logarithmic },
        }
    }

    /// Returns how far up a value is drawn, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let share = match self.is_logarithmic {
            true => (value / self.least).log10() / (self.most / self.least).log10(),
            false => value / self.most,
        };
        share.clamp(0.0, 1.0)
    }

    fn labels(&self) -> Vec<f64> {
        if !self.is_logarithmic {
            return vec![self.least, self.most / 2.0, self.most];
        }
        let decades = [0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0];
        decades.into_iter().filter(|it| *it <= self.most * 1.01).collect()
    }
}

/// Returns the next number above that people read easily.
fn rounded_up(value: f64) -> f64 {
    let unit = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0];
    let step = steps.into_iter().find(|it| it * unit >= value).unwrap_or(10.0);
    step * unit
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
