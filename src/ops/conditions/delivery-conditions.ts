// delivery-conditions.ts: the conditions of the way out: endpoint, credentials, clock, providers. See condition-rules.ts.

import { assertNever } from '../../std/assert.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import * as advice from './condition-texts.ts'
import type { ConditionCode, Conditions, ConditionText } from './conditions.ts'

type UpstreamEvent = Extract<
  GatewayEvent,
  { kind: `${'endpoint' | 'credentials' | 'service' | 'provider'}_${string}` }
>

export function applyUpstream(conditions: Conditions, event: UpstreamEvent): void {
  const { clear } = conditions
  const key = event.provider
  switch (event.kind) {
    case 'endpoint_available':
      clear('ENDPOINT_UNAVAILABLE', key)
      clear('ENDPOINT_UNAUTHORIZED', key)
      clear('WRAPPER_REFUSED', key)
      return
    case 'endpoint_unavailable':
      clear('ENDPOINT_UNAUTHORIZED', key)
      return raise('ENDPOINT_UNAVAILABLE', 'error', advice.unavailable(event))
    case 'endpoint_unauthorized':
      clear('ENDPOINT_UNAVAILABLE', key)
      return raise('ENDPOINT_UNAUTHORIZED', 'error', advice.unauthorized(event))
    case 'credentials_failed':
      return raise('CREDENTIALS_MISSING', 'error', advice.noCredentials(event))
    case 'credentials_found':
      return clear('CREDENTIALS_MISSING', key)
    case 'credentials_stale':
      return raise('CREDENTIALS_STALE', 'warning', advice.staleCredentials(event))
    case 'credentials_refreshed':
      return clear('CREDENTIALS_STALE', key)
    case 'service_clock_off':
      return raise('CLOCK_OFF', 'warning', advice.clockOff(event))
    case 'service_clock_right':
      return clear('CLOCK_OFF', key)
    case 'provider_unknown':
      if (event.payloads === 0) return clear('PROVIDER_UNKNOWN', key)
      return raise('PROVIDER_UNKNOWN', 'error', advice.unknownProvider(event))
    default:
      assertNever(event)
  }

  function raise(code: ConditionCode, severity: 'warning' | 'error', text: ConditionText): void {
    conditions.raise({ code, key, severity, ...text })
  }
}
