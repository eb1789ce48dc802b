// ops-interface.ts: what the rest of the gateway uses of ops. ops.ts makes it.

import type { Writable } from 'node:stream'
import type { Situation } from '../alerts/types.ts'
import type { Clock } from '../std/clock.ts'
import type { GatewayError } from '../std/gateway-error.ts'
import type { Emit } from '../domain/event.ts'
import type { LogConfig, OpsConfig } from './config.ts'
import type { Status } from './status-schema/status-schema.ts'
import type { StageViews } from './types.ts'

export type OpsDeps = {
  clock: Clock
  version: string
  stdout: Writable
  env: NodeJS.ProcessEnv
  /** Gets each event after it is recorded. */
  observe?: Emit
}

export type OpsOptions = {
  ops: OpsConfig
  log: LogConfig
  /** Of the config. The audit log is below it, and the control socket where no other place is given. */
  spoolPath: string
}

export type Ops = {
  /** For every stage. Never throws. */
  emit: Emit
  /** Adds what exists by now. */
  attach(stages: Partial<StageViews>): void
  /** Opens the HTTP server. An address that cannot be used is a state, and is tried again. */
  start(): Promise<void>
  /**
   * Puts users and certificates in force; open connections stay. Throws CERTIFICATES_INVALID; what cannot be
   * used stays as it was.
   */
  renew(this: void, config: Pick<OpsConfig, 'users' | 'tls'>): void
  /** Puts the level of the log and the zone in force. */
  use(this: void, options: { log: LogConfig; ops: Pick<OpsConfig, 'time_zone'> }): void
  /** What the start does now; it shows that the start goes on. Without effect once ready. */
  starting(this: void, progress: string): void
  /** The daemon stays up and accepts nothing, for this reason. */
  refusing(fault: GatewayError): void
  /** The stages are closed; others may be attached. */
  detach(): void
  /** Resolves when the control socket is open, as far as that is possible. */
  ready(): Promise<void>
  stopping(reason: string): void
  /** The records are closed next. Does not reject. */
  saveHistory(this: void): Promise<void>
  /** After everything else has stopped. */
  stop(): Promise<void>
  status(): Status
  /** What alerts are made of. */
  situation(this: void): Situation
  /** Base URL of the HTTP server; null before start() and after stop(). */
  url(): string | null
  /** `unix:` and the path of the control socket; null while it is not open. */
  control(): string | null
}
