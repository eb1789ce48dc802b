// ops.ts: the gateway seen from outside: log, metrics, conditions, status, HTTP. Entry file of this folder.
//
// Promises
//   Each event becomes a line in the log and a number. While something is wrong, one condition says what, why
//   and what to do. Nothing that loses data is below `error`, and no secret comes out. Ops answers before the
//   store is opened and after it is lost. It never disturbs the stages: emit() does not throw and does not
//   wait, and what it keeps is bounded.
//
// How
//   emit     is given to every stage when it is created. Events are about batches and states, never about
//            single messages: their owners count those, and the counters are read on request
//   attach   gives the views, counters and states of the stages, each when it exists. /status and /metrics
//            work while any of them is missing. Only types of the stages are imported (types.ts)
//
//   createOps -> start (log, HTTP, not ready) -> attach... -> ready -> stopping -> stop (last of all)
//                   '-> starting..., refusing    '-> refusing, detach -> attach...
//
//   conditions/   what is wrong now
//   gateway-verdict/  whether it works, in one word and one sentence
//   logging/      JSON lines on stdout
//   metrics/      Prometheus
//   history/      the last hour, day and week, for plots
//   http/         the servers, and what can be read and changed through them
//   page/         what the servers show to browsers
//   audit/        the audit log of changes
//   operations/   the register of what can be asked and changed
//
// What can go wrong, and what then happens
//   port in use            the condition HTTP_LISTENER_FAILED; it is opened as soon as it can be
//   no control socket      the condition CONTROL_SOCKET_FAILED; commands that change something do not work
//   stdout is not read     lines are lost and counted (gateway_log_lines_lost_total)
//   a stage throws         /status answers 500 with the reason; everything else works
//   systemd-notify hangs   it is killed after 5 s; see systemd-notify.ts

import { useTimeZone, type CancelTimer, type EpochMs } from '../std/clock.ts'
import type { GatewayError } from '../std/gateway-error.ts'
import type { GatewayEvent } from '../domain/event.ts'
import { ConservationCheck, conservationOf, gonePayloads } from './conservation-check.ts'
import { createConditionHistory } from './conditions/condition-history.ts'
import { specOf } from './conditions/condition-catalogue.ts'
import { createCauses } from './conditions/causes.ts'
import { createConditions } from './conditions/conditions.ts'
import { writeError } from '../std/journal.ts'
import { controlSocketPath } from './config.ts'
import { DeadLetterCauses } from './conditions/dead-letter-conditions.ts'
import { openHttp, type HttpServer } from './http/http.ts'
import { createHistory } from './history/history.ts'
import { createLog } from './logging/logging.ts'
import { createMetrics } from './metrics/metrics.ts'
import { createNotify } from './systemd-notify.ts'
import type { StageViews } from './types.ts'
import { deadLettersOf, notReadyOf, seenOf, verdictSource } from './status-schema/seen.ts'
import { buildStatus, type Status } from './status-schema/status-schema.ts'
import { serviceStatusOf, verdictAnswer, verdictOf, type Verdict } from './gateway-verdict/gateway-verdict.ts'
import type { Ops, OpsDeps, OpsOptions } from './ops-interface.ts'
import type { ConditionEnd, Situation } from '../alerts/types.ts'
import { createTapRoute } from './http/streams/tap-stream.ts'

export { metricCatalogue, durationHistograms } from './metrics/metrics-catalogue.ts'
export { connectFacts } from './connect-facts.ts'
export { conditionCatalogue } from './conditions/condition-catalogue.ts'
export { eventMeaning } from './logging/log-line.ts'
export { createAudit, readAudit, type Audit, type ChangeEnd } from './audit/audit.ts'
export { auditFileNames } from './audit/audit-file.ts'
export type {
  DeviceMessage,
  DeviceMessages,
  DeviceTotals,
  DeviceView,
  Forgotten,
  MappingStage,
  MessageOutcome,
  ProbeReport,
  ReloadReport,
} from './types.ts'
export { contentOf } from './http/streams/tap-stream.ts'
export { requestCodes } from './http/json-answer.ts'
export { listOf } from './http/http-routing/route-list.ts'
export { routes } from './http/route-table.ts'
export { effects, needsYes, nowOf, type Operation } from './operations/operation.ts'
export { linesOfBlocks } from './operations/shown-block.ts'
export { operationNamed, operations } from './operations/operations.ts'
export { deadLetterQueryOf } from './operations/dead-letter-operations.ts'
export { deviceListed, deviceRowOf } from './operations/device-operations.ts'
export { stateCountsText, type ShownDevice } from './operations/device-text.ts'
export { remapLines, sumOf } from './operations/dead-letter-text.ts'
export { ledgerLimitMax, ledgerQueryOf, type ShownLedger } from './operations/ledger-operation.ts'
export { metaOf, readParameters, type RawParameters } from './http/http-routing/parameters.ts'
export { isQuietAt, type SilenceConfig } from './silence-config.ts'
export { laneTable, offsetText, providerTable } from './status-tables.ts'
export { answerShape, statusSchema, type Status } from './status-schema/status-schema.ts'

export type { Ops, OpsDeps, OpsOptions } from './ops-interface.ts'

const lookEveryMs = 1000 // A state that lasts shorter may be missed.
const quietLookMs = 5000 // Where nothing happens, only time can bring a state, or end it.
/** After a start, a state that holds is reported within this: what was open before it is over then. */
const settledAfterMs = 120_000
const sumEveryMs = 10_000 // The sums take more counters than the states do.

export function createOps(deps: OpsDeps, options: OpsOptions): Ops {
  const { clock, version, stdout, env } = deps
  useTimeZone(options.ops.time_zone)
  const startedAt = clock.now()
  const stages: StageViews = { ingest: null, spool: null, delivery: null }
  const log = createLog({ clock, stdout, env }, options.log)
  const past = createConditionHistory({ clock, ourNow, register: () => conditions })
  const conditions = createConditions({ clock, history: past, emit })
  const deadLetters = new DeadLetterCauses()
  const conservation = new ConservationCheck(clock)
  const causes = createCauses(stages, { deadLetters, conservation, refusal: () => refusal })
  const metrics = createMetrics({ view: metricsView, lanes: () => stages.spool?.lanes() ?? [] })
  const notify = createNotify({ clock, env })
  const history = createHistory({ clock, stages })
  let recovered = 0
  let countedSince = startedAt
  let notReady: string | null = 'starting'
  let refusal: GatewayError | null = null
  let isStopping = false
  /** The spool is lost, and the stages end. */
  let isLosing = false
  /** Null: the interrupted conditions are over. */
  let readyAtMs: number | null = null
  let storedVersion = 0
  /** As systemd knows it. */
  let serviceVerdict: Verdict = 'ok'
  /** `hasEvent`, `writes` of the spool: since the last one. `atMs`: of the next one. */
  const look = { hasEvent: false, writes: 0, atMs: 0, summedMs: -Infinity }
  let http: HttpServer | null = null
  let cancelLook: CancelTimer = () => {}

  return {
    emit,
    attach,
    detach,
    start,
    renew: (config) => http?.renew(config),
    use(next) {
      log.setLevel(next.log)
      useTimeZone(next.ops.time_zone)
    },
    starting,
    refusing,
    ready,
    stopping,
    async saveHistory() {
      await history.save()
      await past.save(stages.records ?? null)
    },
    stop,
    status,
    situation,
    url: () => http?.url ?? null,
    control: () => (http?.socketPath ? `unix:${http.socketPath}` : null),
  }

  /** What people name is a time of the gateway, also where the clock of the machine is wrong. */
  function ourNow(): EpochMs {
    return stages.ourTime?.now() ?? clock.now()
  }

  function emit(event: GatewayEvent): void {
    look.hasEvent = true
    if (look.atMs - clock.monotonic() > lookEveryMs) lookIn(lookEveryMs)
    // Separately: a line that cannot be written must not hide the condition.
    for (const observe of [log.write, conditions.apply, metrics.apply, remember]) {
      try {
        observe(event)
      } catch (error) {
        const line = { level: 'error', event: 'event_not_recorded', kind: event.kind, why: String(error) }
        writeError(stdout, env, `${JSON.stringify(line)}\n`)
      }
    }
    deps.observe?.(event)
  }

  function remember(event: GatewayEvent): void {
    deadLetters.note(event)
    if (event.kind !== 'spool_recovered') return
    refusal = null
    const totals = stages.spool?.totals()
    // What the opening found damaged was there before.
    if (totals === undefined) recovered = event.payloads + event.damaged
    // After a loss of the store, the counters already have what came and went since the start, but for writes
    // that failed and are there. Everything else that is missing shows in the sum.
    else if (event.unconfirmedWrites > 0) recovered = event.payloads - totals.payloads + gonePayloads(totals)
  }

  /** For the log and the history. Who asks for the conditions makes it look, too. */
  function lookAgain(): void {
    const before = { ...look }
    look.hasEvent = false
    past.restore(stages.records ?? null)
    lookSafely()
    if (readyAtMs !== null && clock.monotonic() - readyAtMs >= settledAfterMs) {
      readyAtMs = null
      past.settle()
    }
    if (storedVersion !== conditions.version) {
      storedVersion = conditions.version
      void past.save(stages.records ?? null) // It never rejects.
    }
    const isQuiet = !before.hasEvent && !look.hasEvent && look.writes === before.writes
    lookIn(isQuiet ? quietLookMs : lookEveryMs)
  }

  function lookSafely(): void {
    try {
      if (clock.monotonic() - look.summedMs >= sumEveryMs) {
        look.summedMs = clock.monotonic()
        checkSums()
      }
      lookForStates()
      look.writes = stages.spool?.totals().groups ?? 0
      notifyService()
    } catch {
      // A stage has a fault: /status and the alerts say it.
    }
  }

  function lookIn(delayMs: number): void {
    cancelLook()
    look.atMs = clock.monotonic() + delayMs
    cancelLook = clock.after(delayMs, lookAgain)
  }

  /** Starting, refusing and stopping have texts of their own. */
  function notifyService(): void {
    if (notReady !== null) return
    const { verdict, text } = serviceStatusOf(verdictSource(seenNow()))
    if (verdict !== serviceVerdict) notify.status(text)
    serviceVerdict = verdict
  }

  function attach(more: Partial<StageViews>): void {
    Object.assign(stages, more)
    more.spool?.listen?.({ writeEnded: metrics.writeEnded, acksGiven: metrics.acksGiven })
  }

  async function start(): Promise<void> {
    history.start()
    lookIn(lookEveryMs)
    history.follow(() => void past.save(stages.records ?? null)) // It never rejects.
    http = await openHttp(
      {
        version,
        now: clock.now,
        ourNow,
        status,
        notReady: () => notReadyOf({ notReady, stages }),
        verdict: () => verdictAnswer(verdictSource(view())),
        metrics: async () => ({ contentType: metrics.contentType, text: await metrics.scrape() }),
        stages,
        history: history.read,
        past,
        openConditions: conditions.open,
        endCondition: conditions.end,
        tap: createTapRoute({ clock, taps: () => stages.taps ?? null }),
      },
      { clock, emit },
      { ...options.ops, spoolPath: options.spoolPath, socket: socketPlace() },
    )
    attach({ http })
  }

  function socketPlace() {
    const { ops: config, spoolPath } = options
    const runtimeDirectory = env['RUNTIME_DIRECTORY'] ?? ''
    const path = controlSocketPath({ ...config, spoolPath, runtimeDirectory })
    return { path, isShared: config.control_socket === undefined && runtimeDirectory !== '' }
  }

  function detach(): void {
    deadLetters.detached(deadLettersOf(stages))
    for (const name of Object.keys(stages) as (keyof StageViews)[])
      if (name !== 'ourTime' && name !== 'alerts' && name !== 'http') stages[name] = null
    recovered = 0
    countedSince = clock.now()
    history.detached()
    // The next stages report what is wrong then.
    readyAtMs = null
    isLosing = false
    if (!isStopping) conditions.interrupt(causes())
  }

  function starting(progress: string): void {
    if (isStopping || notReady === null) return
    notReady = progress
    notify.starting(progress)
  }

  function refusing(fault: GatewayError): void {
    if (isStopping) return
    refusal = fault
    notReady = `${fault.code}: ${fault.why}`
    // Of the states that hold now, what follows from the refusal is over, and the others are interrupted.
    lookSafely()
    isLosing = stages.spool !== null
    // The directory around the spool may be there now.
    void http?.ensureSocket()
    // For systemd the start is over: the daemon is up, and a restart would not help.
    notify.ready(`Not ready. ${notReady}`)
  }

  async function ready(): Promise<void> {
    if (isStopping) return
    notReady = null
    readyAtMs = clock.monotonic()
    await http?.ensureSocket()
    notify.ready('Ready')
    serviceVerdict = 'ok'
    // Before the log says that it is ready: who has just started it reads until there.
    lookSafely()
  }

  function stopping(reason: string): void {
    // What was interrupted before, and does not hold at the end of a run in order, is over.
    if (notReady === null) past.settle()
    isStopping = true
    notReady = `stopping: ${reason}`
    notify.stopping()
  }

  async function stop(): Promise<void> {
    notReady ??= 'stopping'
    look.atMs = 0
    cancelLook()
    history.stop()
    metrics.stop()
    log.close()
    const server = http
    http = null
    await Promise.all([server?.close(), notify.close()])
  }

  /** For who asks. */
  function lookNow(): void {
    checkSums()
    lookForStates()
  }

  /** While the stages end one after the other, what was wrong before is still wrong. */
  function lookForStates(): void {
    if (!isStopping && !isLosing) conditions.look(causes())
  }

  function checkSums(): void {
    const { spool } = stages
    const isLost = spool?.holdReason() === 'store_lost'
    conservation.check(conservationOf(stages, recovered), spool?.isWriting?.() === true || isLost)
  }

  function status(): Status {
    return buildStatus(view())
  }

  function situation(): Situation {
    const source = verdictSource(view())
    const isReady = notReady === null
    const { conditions: open } = source
    const isComplete = isReady && conditions.hidden === 0
    return { ...verdictOf(source), isReady, isComplete, conditions: open, endOf }
  }

  function endOf(of: { code: string; key: string | null }): ConditionEnd {
    const isContinued = conditions
      .open()
      .some(({ code, key }) => specOf(code).continues === of.code && key === of.key)
    return isContinued ? 'continues' : past.endOf(of)
  }

  function view() {
    lookNow()
    return { version, pid: process.pid, ...seenNow(), forecast: history.forecast() }
  }

  function seenNow() {
    return {
      startedAt,
      countedSince,
      now: clock.now(),
      notReady,
      stages,
      recovered,
      conditions: conditions.open().map((one) => ({ ...one, known: past.known(one) })),
      conditionsHidden: conditions.hidden,
    }
  }

  function metricsView() {
    const source = view()
    return {
      ...seenOf(source),
      verdict: verdictOf(verdictSource(source)).verdict,
      linesLost: log.linesLost,
      linesSuppressed: log.linesSuppressed,
      http: http?.counters() ?? null,
    }
  }
}
