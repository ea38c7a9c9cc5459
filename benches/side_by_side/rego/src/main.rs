//! Evaluates the set `data.classes.groups` of a Rego policy for each line of a file of inputs.
//!
//! `clade-rego POLICY INPUTS` prints what matches, a JSON list a line, and on stderr how many milliseconds of computing
//! reading the policy and each input took.

use std::error::Error;

use regorus::{Engine, Value};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(policy), Some(inputs)) = (arguments.next(), arguments.next()) else {
        return Err("usage: clade-rego POLICY INPUTS".into());
    };
    let policy = std::fs::read_to_string(policy)?;
    let inputs = std::fs::read_to_string(inputs)?;
    let began = computed()?;
    let mut engine = Engine::new();
    engine.add_policy("policy.rego".to_owned(), policy)?;
    let mut lines = inputs.lines();
    // The first evaluation prepares the rules.
    if let Some(first) = inputs.lines().next() {
        evaluate(&mut engine, first)?;
    }
    let mut times = vec![computed()? - began];
    for line in &mut lines {
        let began = computed()?;
        let groups = evaluate(&mut engine, line)?;
        times.push(computed()? - began);
        println!("{}", serde_json::to_string(&groups)?);
    }
    eprintln!("{}", serde_json::to_string(&times)?);
    Ok(())
}

fn evaluate(engine: &mut Engine, input: &str) -> Result<Value, Box<dyn Error>> {
    engine.set_input(Value::from_json_str(input)?);
    Ok(engine.eval_rule("data.classes.groups".to_owned())?)
}

/// The computing time of this thread in milliseconds; there is no other one.
fn computed() -> Result<f64, Box<dyn Error>> {
    let times = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds: f64 = times.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e6)
}
