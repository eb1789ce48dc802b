// exact-decimal.ts: decimals as whole numbers of steps, in BigInt: another way to compute what src computes in
// fields/decimal.ts.

/** `steps` x 10^-`places`. */
export type Exact = { readonly steps: bigint; readonly places: number }

/** Far beyond what the gateway takes; larger ones would only cost time. */
const exponentMax = 400

const decimal = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** A number or a decimal text; undefined for anything else. */
export function exactFrom(value: unknown): Exact | undefined {
  const text = typeof value === 'number' ? String(value) : value
  const [, sign = '', whole, fraction = '', exponent = '0'] =
    typeof text === 'string' ? (decimal.exec(text) ?? []) : []
  if (whole === undefined || Math.abs(Number(exponent)) > exponentMax) return undefined
  const steps = BigInt(`${sign}${whole}${fraction}`)
  const places = fraction.length - Number(exponent)
  return places < 0 ? { steps: steps * 10n ** BigInt(-places), places: 0 } : { steps, places }
}

export function sum(one: Exact, other: Exact): Exact {
  const places = Math.max(one.places, other.places)
  return { steps: stepsAt(one, places) + stepsAt(other, places), places }
}

export function difference(one: Exact, { steps, places }: Exact): Exact {
  return sum(one, { steps: -steps, places })
}

export function times(one: Exact, other: Exact): Exact {
  return { steps: one.steps * other.steps, places: one.places + other.places }
}

/** As src writes it: no exponent, no zeros at the end, no minus before zero. */
export function textOf({ steps, places }: Exact): string {
  const digits = String(steps < 0n ? -steps : steps).padStart(places + 1, '0')
  const whole = digits.slice(0, digits.length - places)
  const fraction = places === 0 ? '' : digits.slice(-places).replace(/0+$/, '')
  return `${steps < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`
}

function stepsAt({ steps, places }: Exact, wanted: number): bigint {
  return steps * 10n ** BigInt(wanted - places)
}
