// event-samples.ts: one event of each name, with values that occur: event-samples.yaml.

import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import type { EventName, EventOf } from '../../src/domain/event.ts'
import { GatewayError, type ErrorCode } from '../../src/std/gateway-error.ts'

type Fault = { code: ErrorCode; what: string; why: string; act: string }
type Written = Record<EventName, { fault?: Fault }>

const written = parse(readFileSync(new URL('event-samples.yaml', import.meta.url), 'utf8')) as Written

export const eventSamples = Object.fromEntries(
  Object.entries(written).map(([kind, { fault, ...fields }]) => {
    const error = fault && { fault: new GatewayError(fault.code, fault) }
    return [kind, { kind, ...fields, ...error }]
  }),
) as unknown as { [Name in EventName]: EventOf<Name> }
