// option-values.ts: parsers of option values. Each rejects a wrong value with the form and range that it
// accepts.

import { InvalidArgumentError } from 'commander'
import { readUrl } from '../../std/given-url/given-url.ts'
import { formatDuration, parseDuration } from '../../std/quantity.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import { shownUrl } from '../../std/shown-url.ts'

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

/** A file that is written while standard output has something else. */
export function outputFile(text: string): string {
  if (text !== '-' && text !== '') return text
  throw new InvalidArgumentError('Give a file: standard output has the other output of the command.')
}

/** [MQTT-4.7.1-2] and [MQTT-4.7.1-3]: a wildcard is a whole level, and "#" the last one. */
export function topicFilter(text: string): string {
  const levels = text.split('/')
  const isWhole = levels.every((level) => level.length === 1 || !/[+#\0]/.test(level))
  if (text !== '' && isWhole && !levels.slice(0, -1).includes('#')) return text
  throw new InvalidArgumentError(
    'Give a topic filter, with "+" for one level and "#" as the last level only.',
  )
}

/** The value of --mqtt: the number of the version as mqtt.js and CONNECT have it. */
export function mqttVersion(text: string): MqttVersion {
  if (text === '3.1.1') return 4
  if (text === '5') return 5
  throw new InvalidArgumentError('Give 3.1.1 or 5.')
}

export type MqttVersion = 4 | 5

/** The value of --broker. */
export function brokerUrl(protocols: readonly string[]): (text: string) => string {
  return (text) => {
    const given = readUrl(text, protocols)
    // An "@" in the path comes from a password with "/", which ends the host.
    if (typeof given !== 'string' && !given.url.pathname.includes('@')) return text
    // InvalidArgumentError would print the value, which may have a password.
    throw new GatewayError('USAGE', {
      what: `--broker is not a URL of a broker: ${shownUrl(text)}.`,
      why: typeof given === 'string' ? `It ${given}.` : 'Its path has an "@".',
      act: 'Give a URL such as mqtt://broker.example:1883. Write "/", "?" and "#" of a password as %2F, %3F and %23.',
    })
  }
}
