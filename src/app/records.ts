// records.ts: the database of the records, and what is kept in it: the ledger, and the device records. The
// device records are kept without a ledger, too.

import type { Clock } from '../std/clock.ts'
import type { StateSource } from '../domain/condition-state.ts'
import type { Emit } from '../domain/event.ts'
import type { Config } from '../config/config.ts'
import { providerNames } from '../delivery/config.ts'
import {
  createClientRecords,
  createDeviceRecords,
  createFieldRecords,
  type ClientRecords,
  type DeviceRecords,
  type FieldRecords,
  type RecordsStore,
} from '../device-records/device-records.ts'
import type { Ingest } from '../ingest/ingest.ts'
import { ledgerOptions } from '../ledger/config.ts'
import { createLedger, createRecords, type Ledger } from '../ledger/ledger.ts'
import { isStoredSource, type LostFields, type Mapper } from '../mapping/mapping.ts'
import { isSpoolAt, type Spool } from '../spool/spool.ts'
import type { CheckStore, OpenStore } from '../storage/storage.ts'
import type { KernelClock } from './kernel-clock.ts'
import type { GatewayTime } from './our-time.ts'

export type OpenRecords = {
  ledger: Ledger | null
  devices: DeviceRecords
  /** For others that keep something in the same database. */
  store: RecordsStore & StateSource
  start(): void
  /** Which mapper is in force. Restores which fields its devices had, and keeps what changes. */
  follow(active: FollowedMapping): void
  /** Restores what was known of them, and keeps what changes. */
  followClients(clients: FollowedClients): void
  /** Writes and copies what there is until `deadline` aborts, then closes the database. */
  stop(deadline: AbortSignal): Promise<void>
}

type FollowedMapping = { readonly mapper: Pick<Mapper, 'withheldOf'>; readonly lostFields: LostFields }

type FollowedClients = Pick<
  Ingest['clients'],
  'takeChanged' | 'restore' | 'forgetBefore' | 'unnamed' | 'clockStepped'
>

type Deps = {
  clock: Clock
  emit: Emit
  openStore: OpenStore
  checkStore?: CheckStore
  ourTime: GatewayTime
  kernel: Pick<KernelClock, 'bootId'>
}

export function openRecords(deps: Deps, spool: Spool, config: Config): OpenRecords {
  const { clock, ourTime, emit } = deps
  const options = ledgerOptions(config.ledger, config.spool.path)
  const isLedgerOn = config.ledger.enabled
  const { previousEnd } = spool
  const database = createRecords(
    {
      ...deps,
      previousEnd,
      // A store that is not checked has no marker.
      ...(deps.checkStore && { isSpoolThere: () => isSpoolAt(config.spool.path) }),
      emit: (event) => {
        if (isLedgerOn || event.kind !== 'ledger_opened') emit(event)
      },
    },
    options,
  )
  const ledgerDeps = { ...deps, records: database, source: spool, clockOffsetMs: ourTime.wallOffsetMs }
  const ledger = isLedgerOn ? createLedger(ledgerDeps, options) : null
  let clientRecords: ClientRecords | null = null
  let clients: FollowedClients | null = null
  const recordDeps = {
    clock: { ...clock, now: ourTime.now },
    isTimeKnown: () => ourTime.view().by !== null,
    bootId: deps.kernel.bootId,
    store: database,
    knownTime() {
      const offsetMs = ourTime.wallOffsetMs()
      return offsetMs === null ? null : clock.now() + offsetMs
    },
    isDiskLow: () => spool.holdReason() === 'disk_low',
  }
  const writing = {
    retentionMs: config.ops.devices.retention,
    everyMs: 10_000,
    recordsPerRound: 500,
    newPerRound: 2000,
    roundsToWait: 6,
  }
  let active: FollowedMapping | null = null
  let fieldRecords: FieldRecords | null = null
  const devices = createDeviceRecords(
    {
      ...recordDeps,
      providers: providerNames(config.delivery),
      withheldOf: (device) => active?.mapper.withheldOf(device) ?? [],
      unnamed: (sender, message) => clients?.unnamed(sender, message),
    },
    {
      ...writing,
      devicesMax: config.ops.devices.max,
      messagesBytesMax: config.ops.devices.messages_max_bytes,
    },
  )
  ourTime.onStep((byMs) => {
    devices.clockStepped(byMs)
    clients?.clockStepped(byMs)
  })
  return {
    ledger,
    devices,
    store: database,
    start() {
      ledger?.start()
      devices.start()
    },
    follow(next) {
      active = next
      fieldRecords = createFieldRecords(recordDeps, { ...next.lostFields, isStored: isStoredSource })
      fieldRecords.start()
    },
    followClients(source) {
      clients = source
      clientRecords = createClientRecords({ ...recordDeps, source }, writing)
      // It never rejects.
      void clientRecords.start()
    },
    async stop(deadline) {
      await fieldRecords?.stop()
      await clientRecords?.stop(deadline)
      await devices.stop(deadline)
      await ledger?.stop(deadline)
      await database.close()
    },
  }
}
