// session-risks.ts: what would lose or strand messages at the broker: by the config, by CONNACK and SUBACK,
// and by what is seen of the window. One report for all connections of a bridge.

import type { IConnackPacket } from 'mqtt-packet'
import type { Clock } from '../../../std/clock.ts'
import type { SourceRisk } from '../../../domain/condition-state.ts'
import { formatDuration } from '../../../std/quantity.ts'
import { SourceRisks } from '../../message-sources/source-risks.ts'
import type { MessageRefusal } from '../../types.ts'
import type { Fault, Granted } from '../bridge-faults/bridge-faults.ts'
import type { BridgeOptions } from '../types.ts'

/** The data should survive an outage that is longer. */
export const shortExpiryMs = 3_600_000

export type SessionRisks = {
  /** What the config itself allows; `check` warns of it, too. */
  configured(clientId: string): void
  /** `hadSession`: the broker had a session with this client id, in an earlier run of the gateway, too. */
  connected(clientId: string, connack: IConnackPacket, hadSession: boolean): void
  /** `refusal`: the filters that are refused, in words; null where none is. */
  granted(clientId: string, granted: readonly Granted[], refusal: Fault | null): void
  /** So few messages were outstanding at most, again and again; null: not now. */
  window(clientId: string, messages: number | null): void
  /** Connections that broke soon after their begin, in a row, the last by `fault`; null: not any more. */
  shortConnections(clientId: string, short: { times: number; fault: Fault } | null): void
  /** The broker was down, and kept the session. `afterMs`: since the last refused try. */
  brokerRestarted(clientId: string, afterMs: number): void
  /** A message that cannot be mapped became a dead letter. */
  refusedMessage(clientId: string, refusal: MessageRefusal): void
  readonly found: SourceRisks
}

/** The first member that is back after a restart ends the gap. */
const oneRestartMs = 60_000

export function createSessionRisks({ clock }: { clock: Clock }, options: BridgeOptions): SessionRisks {
  const { keepsSession, sessionExpiryMs } = options
  const found = new SourceRisks({ clock }, options.name)
  let restartedAtMs: number | null = null

  function report(
    risk: SourceRisk,
    clientId: string,
    detail: string | null,
    act: string | null = null,
  ): void {
    found.set(risk, clientId, detail === null ? null : { clientId, detail, act })
  }

  return {
    configured(clientId) {
      if (!keepsSession)
        report('clean_session', clientId, 'With session: clean messages are lost while it is not connected')
      else if (options.isVersion5 && sessionExpiryMs < shortExpiryMs)
        report(
          'short_expiry',
          clientId,
          `session_expiry is ${formatDuration(sessionExpiryMs)}. Messages of a longer outage are lost`,
        )
      if (options.qos === 0) report('qos_0', clientId, 'With qos: 0 the broker delivers no message again')
    },
    connected(clientId, { properties, sessionPresent }, hadSession) {
      const expiryMs = (properties?.sessionExpiryInterval ?? Infinity) * 1000
      const isReduced = keepsSession && expiryMs < sessionExpiryMs
      report(
        'expiry_reduced',
        clientId,
        isReduced
          ? `The broker keeps the session for ${formatDuration(expiryMs)} only, and the config asks for ` +
              `${formatDuration(sessionExpiryMs)}. Messages of a longer outage are lost`
          : null,
      )
      if (!keepsSession) return
      // Another client with this client id removes the session: the other risk says so.
      const isTaken = found.has('short_connections', clientId)
      report(
        'session_lost',
        clientId,
        hadSession && !sessionPresent && !isTaken
          ? 'The broker does not have the session any more. Messages from the time without a connection are lost'
          : null,
      )
    },
    granted(clientId, granted, refusal) {
      report('filter_refused', clientId, refusal?.detail ?? null, refusal?.act)
      const low = granted.filter(({ code }) => code < options.qos).map(({ filter }) => filter)
      report(
        'qos_0_granted',
        clientId,
        low.length > 0
          ? `The broker grants QoS 0 for ${low.join(', ')}. It delivers no message again, and queues none`
          : null,
      )
    },
    shortConnections(clientId, short) {
      if (short === null) return report('short_connections', clientId, null)
      report('session_lost', clientId, null)
      const { times, fault } = short
      const cause = fault.isClosed ? 'Another client may use the same client id' : fault.detail
      const detail = `${times} connections in a row broke within seconds. ${cause}`
      report('short_connections', clientId, detail, fault.isClosed ? null : fault.act)
    },
    brokerRestarted(clientId, afterMs) {
      const now = clock.monotonic()
      if (options.shareGroup === null) return
      if (restartedAtMs !== null && now - restartedAtMs < oneRestartMs) return
      restartedAtMs = now
      found.happened('group_restarted', clientId, {
        clientId,
        detail:
          `The broker was down. If it is a Mosquitto 2.0, it forgot the share group and dropped what came in the ` +
          `${formatDuration(afterMs)} before this connection`,
      })
    },
    refusedMessage: (clientId, { reason, detail }) =>
      found.happened(reason === 'OVERSIZED' ? 'oversized' : 'bad_topic', clientId, { clientId, detail }),
    window(clientId, messages) {
      report(
        'small_window',
        clientId,
        messages === null
          ? null
          : `The broker sends at most ${messages} messages before it waits for an acknowledgement`,
      )
    },
    found,
  }
}
