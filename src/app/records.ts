// records.ts: the database of the records, and what is kept in it: the ledger, and the device records. The
// device records are kept without a ledger, too.

import type { Clock } from '../std/clock.ts'
import type { Emit } from '../domain/event.ts'
import type { Config } from '../config/config.ts'
import { providerNames } from '../delivery/config.ts'
import { createDeviceRecords, type DeviceRecords } from '../device-records/device-records.ts'
import { ledgerOptions } from '../ledger/config.ts'
import { createLedger, createRecords, type Ledger } from '../ledger/ledger.ts'
import type { Mapper } from '../mapping/mapping.ts'
import type { Spool } from '../spool/spool.ts'
import type { CheckStore, OpenStore } from '../storage/storage.ts'
import type { GatewayTime } from './our-time.ts'

export type OpenRecords = {
  ledger: Ledger | null
  devices: DeviceRecords
  start(): void
  /** Which mapper is in force. */
  follow(active: { readonly mapper: Pick<Mapper, 'withheldOf'> }): void
  /** Writes and copies what there is until `deadline` aborts, then closes the database. */
  stop(deadline: AbortSignal): Promise<void>
}

type Deps = {
  clock: Clock
  emit: Emit
  openStore: OpenStore
  checkStore?: CheckStore
  ourTime: GatewayTime
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
      emit: (event) => {
        if (isLedgerOn || event.kind !== 'ledger_opened') emit(event)
      },
    },
    options,
  )
  const ledgerDeps = { ...deps, records: database, source: spool, clockOffsetMs: ourTime.wallOffsetMs }
  const ledger = isLedgerOn ? createLedger(ledgerDeps, options) : null
  let active: { readonly mapper: Pick<Mapper, 'withheldOf'> } | null = null
  const devices = createDeviceRecords(
    {
      clock,
      store: database,
      providers: providerNames(config.delivery),
      withheldOf: (device) => active?.mapper.withheldOf(device) ?? [],
      knownTime() {
        const offsetMs = ourTime.wallOffsetMs()
        return offsetMs === null ? null : clock.now() + offsetMs
      },
      isDiskLow: () => spool.holdReason === 'disk_low',
    },
    {
      devicesMax: config.ops.devices.max,
      retentionMs: config.ops.devices.retention,
      everyMs: 10_000,
      recordsPerRound: 500,
      roundsToWait: 6,
    },
  )
  return {
    ledger,
    devices,
    start() {
      ledger?.start()
      devices.start()
    },
    follow(next) {
      active = next
    },
    async stop(deadline) {
      await devices.stop(deadline)
      await ledger?.stop(deadline)
      await database.close()
    },
  }
}
