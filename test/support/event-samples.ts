// event-samples.ts: one event of each name, and one state of each code, with values that occur: event-samples.yaml and
// state-samples.yaml.

import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import type { EventName, EventOf } from '../../src/domain/event.ts'
import type { State, StateCode } from '../../src/domain/condition-state.ts'
import { GatewayError, type ErrorCode } from '../../src/std/gateway-error.ts'

type Fault = { code: ErrorCode; what: string; why: string; act: string }
function samplesOf(file: string, tag: 'kind' | 'code'): unknown {
  const text = readFileSync(new URL(file, import.meta.url), 'utf8')
  const written = parse(text, { merge: true }) as Record<string, { fault?: Fault }>
  return Object.fromEntries(
    Object.entries(written).map(([name, { fault, ...fields }]) => {
      const error = fault && { fault: new GatewayError(fault.code, fault) }
      return [name, { [tag]: name, ...fields, ...error }]
    }),
  )
}

export const eventSamples = samplesOf('event-samples.yaml', 'kind') as {
  [Name in EventName]: EventOf<Name>
}

export const stateSamples = samplesOf('state-samples.yaml', 'code') as {
  [Code in StateCode]: State<Code>
}
