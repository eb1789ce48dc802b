// examples.ts: what was heard, as a device table and as cases of the mapping (`map --test`).
//
// A case is a message that was heard, mapped alone, with the payloads that it became. It shows what the
// mapping does today; a person compares it with what the device shows, and corrects it.

import { stringify } from 'yaml'
import type { MappingConfig } from '../mapping/config.ts'
import { fitOf } from './preset-fit.ts'
import type { Fit } from './fit.ts'
import type { TopicShape } from './topic-shapes.ts'
import type { Example, Proposal, Proposed } from './types.ts'

const examplesMax = 3
/** Of one message: a list of hundreds of records makes no readable case. */
const payloadsMax = 5
const bytesMax = 4096

export function examplesOf(mapping: MappingConfig, shapes: readonly TopicShape[], fit: Fit): Example[] {
  // Cases have a client id of their own.
  if (fit.namedBySender) return []
  const examples: Example[] = []
  for (const shape of shapes) {
    const { last: message } = shape
    if (message === null || message.bytes.length > bytesMax || examples.length >= examplesMax) continue
    const alone = { ...shape, samples: [message], last: message }
    const result = fitOf(mapping, [alone])?.shapes.get(alone)?.last
    if (result?.kind === 'payloads' && result.payloads.length <= payloadsMax)
      examples.push({ message, payloads: result.payloads })
  }
  return examples
}

/** '' where there are none. */
export function casesYaml({ proposals }: Pick<Proposed, 'proposals'>): string {
  const cases = proposals.flatMap((proposal) =>
    proposal.examples.map((example, index) => caseOf(proposal, example, index)),
  )
  return cases.length === 0 ? '' : stringify({ cases }, { lineWidth: 100 })
}

type Body = {
  signalTimestamp: number
  gps?: Record<string, unknown>
  signals?: { id: string; type: string; value: string; valueUnit?: string; assetPart?: string }[]
}

function caseOf({ source }: Proposal, { message, payloads }: Example, index: number): object {
  return {
    name: `${source.name}: message ${index + 1} that was heard`,
    topic: message.topic,
    ...bytesText(message.bytes),
    at: new Date(message.arrivedAt).toISOString(),
    payloads: payloads.map(({ device, deviceTime, json }) => {
      const { gps, signals = [] } = JSON.parse(json) as Body
      return {
        device,
        time: deviceTime ?? 'arrival',
        ...(gps && { gps }),
        ...(signals.length > 0 && { signals: signals.map(({ id: _id, ...signal }) => signal) }),
      }
    }),
  }
}

/** The devices that were heard, for the columns that the gateway does not know by itself. '' for none. */
export function devicesCsv({ proposals }: Pick<Proposed, 'proposals'>): string {
  const named = proposals.filter(({ fit }) => !fit.namedBySender)
  const names = [...new Set(named.flatMap(({ fit }) => fit.deviceNames))]
  if (names.length === 0) return ''
  return `device,asset_id,operator,carrier,model\n${names.map((name) => `${field(name)},,,,\n`).join('')}`
}

function field(name: string): string {
  return /[",\r\n]|^\s|\s$/.test(name) ? `"${name.replaceAll('"', '""')}"` : name
}

/** As text where the bytes are UTF-8 text. */
export function bytesText(bytes: Buffer): { message?: string; hex?: string } {
  const text = bytes.toString()
  return Buffer.from(text).equals(bytes) && !text.includes('\0')
    ? { message: text }
    : { hex: bytes.toString('hex') }
}
