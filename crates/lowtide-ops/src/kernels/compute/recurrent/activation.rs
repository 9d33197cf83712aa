//! [`Activation`]: the functions of gates and states, applied to a row at a time.
//!
//! ~~~text
//! activations = [HardSigmoid, Tanh, Affine], activation_alpha = [0.3, 2]
//!                0.3, 0.5           2, 0      each takes the next of the list if it has such a parameter
//! ~~~

use super::weights::Element;
use crate::kernels::elementwise::Float;
use crate::kernels::vectorise::vectorised;
use lowtide_core::Value;
use lowtide_core::operator::{Call, NoKernel};

/// A function with its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activation {
    function: Function,
    alpha: f32,
    beta: f32,
}

#[derive(Clone, Copy, Debug)]
enum Function {
    Affine,
    Elu,
    HardSigmoid,
    LeakyRelu,
    Relu,
    ScaledTanh,
    Sigmoid,
    Softplus,
    Softsign,
    Tanh,
    ThresholdedRelu,
}

/// What a function is called, and the alpha and beta that it has where none is given, if it has any.
type Row = (&'static str, Function, Option<f32>, Option<f32>);

const ROWS: [Row; 11] = [
    ("Affine", Function::Affine, Some(1.0), Some(0.0)),
    ("Elu", Function::Elu, Some(1.0), None),
    ("HardSigmoid", Function::HardSigmoid, Some(0.2), Some(0.5)),
    ("LeakyRelu", Function::LeakyRelu, Some(0.01), None),
    ("Relu", Function::Relu, None, None),
    ("ScaledTanh", Function::ScaledTanh, Some(1.0), Some(1.0)),
    ("Sigmoid", Function::Sigmoid, None, None),
    ("Softplus", Function::Softplus, None, None),
    ("Softsign", Function::Softsign, None, None),
    ("Tanh", Function::Tanh, None, None),
    ("ThresholdedRelu", Function::ThresholdedRelu, Some(1.0), None),
];

/// The functions of all directions, so many of each; these where none are named.
pub(super) fn read<const N: usize>(
    call: &Call<'_>,
    directions: usize,
    defaults: [&str; N],
) -> Result<Vec<[Activation; N]>, NoKernel> {
    let named = names(call)?.unwrap_or_else(|| defaults.repeat(directions));
    let (wanted, found) = (N * directions, named.len());
    if found < wanted {
        return Err(NoKernel::Misfit(format!("{found} activations, wanted {wanted}")));
    }
    let mut alphas = call.floats("activation_alpha").unwrap_or_default().iter().copied();
    let mut betas = call.floats("activation_beta").unwrap_or_default().iter().copied();
    let mut all = Vec::new();
    for name in &named[..wanted] {
        let row = ROWS.iter().find(|row| row.0.eq_ignore_ascii_case(name));
        let unknown = || NoKernel::Unsupported(format!("the activation {name}"));
        let &(_, function, alpha, beta) = row.ok_or_else(unknown)?;
        let next = |default: Option<f32>, given: &mut dyn Iterator<Item = f32>| {
            default.map_or(0.0, |default| given.next().unwrap_or(default))
        };
        all.push(Activation {
            function,
            alpha: next(alpha, &mut alphas),
            beta: next(beta, &mut betas),
        });
    }
    Ok(all.as_chunks::<N>().0.to_vec())
}

/// The names in the attribute, if it is there.
fn names<'a>(call: &Call<'a>) -> Result<Option<Vec<&'a str>>, NoKernel> {
    let Some(value) = call.op.attribute("activations") else { return Ok(None) };
    let Value::Texts(names) = value else {
        return Err(NoKernel::Misfit("activations that are no list of names".to_owned()));
    };
    let text = |name: &'a Vec<u8>| std::str::from_utf8(name).unwrap_or("?");
    Ok(Some(names.iter().map(text).collect()))
}

impl Activation {
    /// Replaces each value by the function of it.
    pub(super) fn apply<T: Element>(self, values: &mut [T]) {
        let (zero, one) = (T::ZERO, T::ONE);
        let (alpha, beta) = (T::of_f64(self.alpha.into()), T::of_f64(self.beta.into()));
        macro_rules! each {
            (|$x:ident| $y:expr) => {
                vectorised(
                    #[inline(always)]
                    || {
                        for value in values.iter_mut() {
                            let $x = *value;
                            *value = $y;
                        }
                    },
                )
            };
        }
        match self.function {
            Function::Affine => each!(|x| alpha * x + beta),
            Function::Elu => {
                each!(|x| if x > zero { x } else { alpha * Float::exp_m1(x.smaller(zero)) });
            }
            Function::HardSigmoid => each!(|x| (alpha * x + beta).smaller(one).larger(zero)),
            Function::LeakyRelu => each!(|x| if x < zero { alpha * x } else { x }),
            Function::Relu => each!(|x| if x < zero { zero } else { x }),
            Function::ScaledTanh => each!(|x| alpha * Float::tanh(beta * x)),
            Function::Sigmoid => T::sigmoid_all(values),
            Function::Softplus => {
                each!(|x| x.larger(zero) + Float::ln_1p(Float::exp(-x.magnitude())));
            }
            Function::Softsign => each!(|x| x / (one + x.magnitude())),
            Function::Tanh => T::tanh_all(values),
            Function::ThresholdedRelu => each!(|x| if x > alpha { x } else { zero }),
        }
    }
}

/// The attribute `clip`: what is further from 0 before an activation is brought so near.
pub(super) fn read_clip(call: &Call<'_>) -> Result<Option<f32>, NoKernel> {
    match call.float("clip") {
        Some(clip) if clip > 0.0 => Ok(Some(clip)),
        Some(clip) => Err(NoKernel::Misfit(format!("clip is {clip}, wanted more than 0"))),
        None => Ok(None),
    }
}

/// Brings values near enough to 0.
pub(super) fn clip<T: Float>(values: &mut [T], clip: Option<f32>) {
    let Some(clip) = clip.map(|clip| T::of_f64(clip.into())) else { return };
    vectorised(
        #[inline(always)]
        || {
            for value in values.iter_mut() {
                *value = value.smaller(clip).larger(-clip);
            }
        },
    );
}
