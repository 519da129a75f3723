use thriffty::planning::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let shape: Vec<usize> = a[6].split('x').map(|x| x.parse().unwrap()).collect();
    let t = match &a[1][..] {
        "c2c" => DynTransform::C2c,
        "r2c" => DynTransform::R2c,
        _ => DynTransform::R2r,
    };
    let mut o = Options::new(t, shape.len());
    if a[2] != "-" {
        o.exchange = Some(a[2].parse().unwrap());
    }
    o.ignore_shared_memory = a[3] == "1";
    if std::env::var("LEAST").is_ok() {
        o.memory = Memory::Least;
    }
    o.howmany = a[4].parse().unwrap();
    if a.len() > 7 {
        let f = |s: &str| {
            let v: Vec<usize> = s.split(',').map(|x| x.parse().unwrap()).collect();
            PerAxis::from_fn(v.len(), |i| v[i])
        };
        o.input_order = f(&a[7]);
        o.output_order = f(&a[8]);
    }
    let plan = thriffty::local::DynLocalPlan::new(
        DynGrid::new(PerAxis::from_fn(shape.len(), |a| shape[a])).unwrap(),
        t,
        Precision::F64,
        o,
        a[5].parse().unwrap(),
    )
    .unwrap();
    println!("{}", plan.memory());
    std::mem::forget(plan);
}
