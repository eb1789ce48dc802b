// option-values.ts: parsers of option values. Each rejects a wrong value with the form and range that it
// accepts.

import { InvalidArgumentError } from 'commander'
import { formatDuration, parseDuration } from '../../std/quantity.ts'
import { parseTimeArgument } from '../../std/time-argument.ts'

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (/^\d{1,15}$/.test(text) && value >= least && value <= most) return value
    throw new InvalidArgumentError(`Give a whole number from ${least} to ${most}.`)
  }
}

/** The value is in milliseconds. */
export function duration(leastMs: number, mostMs: number): (text: string) => number {
  return (text) => {
    const ms = parseDuration(text)
    if (ms !== undefined && ms >= leastMs && ms <= mostMs) return ms
    const range = `${formatDuration(leastMs)} to ${formatDuration(mostMs)}`
    throw new InvalidArgumentError(`Give a duration with its unit, such as 30s or 5m, from ${range}.`)
  }
}

/** A directory to write into; `-` would be one of that name. */
export function directory(text: string): string {
  if (text !== '-' && text !== '') return text
  throw new InvalidArgumentError('Give a directory: several files are written.')
}

export function time(text: string): number {
  const parsed = parseTimeArgument(text, Date.now())
  if (parsed.kind === 'time') return parsed.at
  throw new InvalidArgumentError(parsed.why)
}

export function brokerUrl(protocols: readonly string[]): (text: string) => string {
  return (text) => {
    if (URL.canParse(text)) {
      const { protocol, hostname } = new URL(text)
      if (protocols.includes(protocol) && hostname !== '') return text
    }
    throw new InvalidArgumentError('Give a URL such as mqtt://broker.example:1883.')
  }
}
