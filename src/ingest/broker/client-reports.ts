// client-reports.ts: reports the begin and the end of connections. Counts refused CONNECTs and connections
// that the gateway closed, by reason, and notes them for the device list.

import type { Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import { createReasonCounter } from '../intake/reason-counter.ts'
import {
  clientDrops,
  disconnects,
  refusals,
  type ClientDropReason,
  type DisconnectReason,
  type RefusalReason,
} from './client-faults.ts'
import type { Clients } from './clients/clients.ts'
import type { Gate } from './gate/gate.ts'
import { RefusalReport } from './refusal-report.ts'

export type ClientReports = {
  refuse(reason: RefusalReason, client: RefusedClient): void
  onDrop(gate: Gate, reason: ClientDropReason, detail: string): void
  /** Its CONNECT was accepted. */
  connected(gate: Gate): void
  /** The connection of an admitted client has ended; `how`, where the gateway did not drop it. */
  ended(gate: Gate, how: DisconnectReason): void
  refused(): ReadonlyMap<string, number>
  dropped(): ReadonlyMap<string, number>
  close(): void
}

/** `identity`: the name that it proved before it was refused. `userName`: the one that it gave. */
export type RefusedClient = {
  clientId: string | null
  identity: string | null
  userName?: string | null
  address: string | null
}

type Deps = { clock: Clock; emit: Emit; clients: Pick<Clients, 'refused' | 'dropped' | 'admitted'> }

export function createClientReports({ clock, emit, clients }: Deps): ClientReports {
  const refusedBy = createReasonCounter(clock, { eventEveryMs: 0 })
  const droppedBy = createReasonCounter(clock, { eventEveryMs: 0 })
  const report = new RefusalReport({ clock, emit, clients })
  return {
    refuse(reason, client) {
      const { clientId, identity, userName = null, address } = client
      refusedBy.add(null, reason)
      const detail = refusals[reason]
      report.add(reason, detail, client)
      emit({ kind: 'client_refused', reason, detail, clientId, identity, address })
      clients.refused({ clientId, identity, userName, address }, { reason, detail })
    },
    onDrop(gate, reason, detail) {
      droppedBy.add(null, reason)
      const clientId = gate.sender?.clientId ?? null
      // TLS has checked the certificate before CONNECT.
      const identity = gate.sender === null ? gate.certificateName : gate.sender.identity
      emit({ kind: 'client_dropped', reason, detail, clientId, identity, address: gate.address })
      if (gate.sender !== null) clients.dropped(gate.sender, { reason, detail })
      else {
        const client = { clientId: null, identity, address: gate.address }
        report.add(reason, detail, client)
        clients.refused(client, { reason, detail })
      }
    },
    connected(gate) {
      gate.acceptedAtMs = clock.monotonic()
      const { clientId = null, identity = null } = gate.sender ?? {}
      emit({ kind: 'client_connected', clientId, identity, address: gate.address })
    },
    ended({ sender, address, acceptedAtMs, dropReason }, how) {
      const { clientId = null, identity = null } = sender ?? {}
      const connectedMs = clock.monotonic() - acceptedAtMs
      const reason = dropReason ?? how
      const detail = dropReason === null ? disconnects[how] : clientDrops[dropReason]
      emit({ kind: 'client_disconnected', reason, detail, clientId, identity, address, connectedMs })
    },
    refused: refusedBy.byReason,
    dropped: droppedBy.byReason,
    close: () => report.close(),
  }
}
