// route.ts: what a path of the ops port is: its method, who may, its parameters, its answers, and the code
// that answers. One list of routes is the source of the routing, of the list at / and of the OpenAPI
// document.

import type { ConditionHistory } from '../../conditions/condition-history.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { z } from 'zod'
import type { EpochMs } from '../../../std/clock.ts'
import type { HistorySpan, HistoryView } from '../../history/history.ts'
import type { Audit } from '../../audit/audit.ts'
import type { Caller, StageViews } from '../../types.ts'
import type { JsonAnswer, TextAnswer } from '../json-answer.ts'
export type { TextAnswer } from '../json-answer.ts'
import type { Access, RequestRights, Right } from '../request-rights/request-rights.ts'

/** What the routes show. */
export type HttpSource = {
  /** By the clock of the machine, as `now` of /status. */
  now(): EpochMs
  /** By the time of the gateway: for times that a person gives. */
  ourNow(): EpochMs
  /** Of the gateway. */
  version: string
  status(): unknown
  /** Null where ready. */
  notReady(): string | null
  verdict(): JsonAnswer
  metrics(): Promise<{ contentType: string; text: string }>
  stages: StageViews
  /** Conditions that were open, and those that a person knows of. */
  past: Pick<ConditionHistory, 'past' | 'know' | 'known'>
  openConditions(): readonly { code: string; key: string | null }[]
  /** False where it is a state, which ends with its cause. */
  endCondition(of: { code: string; key: string | null }): boolean
  /** For plots. */
  history(span: HistorySpan): HistoryView
  /** Streams, and gives null; or refuses. */
  tap(wanted: TapWanted, response: ServerResponse, access: Pick<Access, 'isOpen'>): JsonAnswer | null
}

/** `asEvents`: as server-sent events, for browsers. */
export type TapWanted = {
  device: string | null
  topic: string | null
  source: string | null
  asEvents: boolean
}

/** `lines` are sent while they are made. `streams`: the route writes the answer itself. */
export type RouteAnswer = JsonAnswer | TextAnswer | { lines: AsyncIterable<string> } | 'streams'

export type RouteRequest<Values> = {
  source: HttpSource
  audit: Audit
  spoolPath: string
  values: Values
  /** The part of the path that the route calls `{key}`. */
  key: string
  caller: Caller
  /** Who asks, and what he may. */
  access: Access
  rights: Pick<RequestRights, 'login' | 'logout'>
  /** Of a route with `form`; else empty. */
  form: URLSearchParams
  /** The body of a change that a form makes; without it, the route reads the body of the request. */
  sentBody?: string
  request: IncomingMessage
  response: ServerResponse
  /** Between the slices of a long answer: resolves when this request has its turn (../request-turns.ts). */
  turn(): Promise<void>
  /** Aborts when the connection is closed. */
  signal: AbortSignal
}

/** Of one status. Without a schema: not JSON. `otherType`: where the request accepts that instead. */
export type DocumentedAnswer = {
  means: string
  contentType?: string
  otherType?: string
  schema?: z.ZodType
}

export type Route = {
  method: 'GET' | 'POST'
  /** `/devices/{key}` */
  path: string
  summary: string
  right: Right
  parameters: z.ZodObject
  /** Content type and meaning of the body; without it, a request with a body is refused. */
  body?: { contentType: string; means: string; isOptional?: boolean }
  /** By status; problems left out. */
  answers: Readonly<Record<number, DocumentedAnswer>>
  /**
   * Takes a form, which is read before the route is called. `checked`: where there is a session, the field
   * `token` must be that of it.
   */
  form?: { bytesMax: number; token: 'checked' | 'none' }
  /**
   * For browsers: links of other sites may open it, and the answer may load scripts and styles of this
   * server.
   */
  page?: boolean
  /** Answers without waiting for other requests. */
  atOnce?: boolean
  answer(request: RouteRequest<unknown>): Promise<RouteAnswer> | RouteAnswer
}

type RouteOf<Shape extends z.ZodRawShape> = Omit<Route, 'parameters' | 'answer'> & {
  parameters: z.ZodObject<Shape>
  answer(request: RouteRequest<z.output<z.ZodObject<Shape>>>): Promise<RouteAnswer> | RouteAnswer
}

/** The parameters that `answer` gets are those of the schema. */
export function route<Shape extends z.ZodRawShape>(of: RouteOf<Shape>): Route {
  return of
}

export function methodsOf({ method }: Route): readonly string[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method]
}
