// operation.ts: what an operation is: one thing that people and programs ask of the running daemon. Each is
// spelled once, in a row; everything that offers it is made of the row:
//
//   HTTP, OpenAPI    GET `path`, or POST /control/`name`
//   command          `name` with spaces; `parameters` are its options and arguments (cli/operation-command)
//   page             the question before a change, what it would do, what it did
//   audit log        `name`, and the parameters as they were sent

import type { z } from 'zod'
import type { EpochMs } from '../../std/clock.ts'
import { problem, type JsonAnswer } from '../http/json-answer.ts'
import type { Route, RouteRequest } from '../http/http-routing/route.ts'
import type { Right } from '../http/request-rights/request-rights.ts'
import type { DaemonControl } from '../types.ts'
import type { Block } from './shown-block.ts'

/** What it does, and with that who may, and whether it is in the audit log. */
export const effects = {
  lists: { right: 'read', isRecorded: false },
  /** Whole dead letters or batches. */
  shows: { right: 'show', isRecorded: false },
  /** Data leaves the gateway. */
  exports: { right: 'show', isRecorded: true },
  /** Costs the gateway work, and changes nothing. */
  checks: { right: 'change', isRecorded: false },
  /** With a parameter `yes`, it only reports without it, unless it `actsWithoutYes`. */
  changes: { right: 'change', isRecorded: true },
} as const satisfies Record<string, { right: Right; isRecorded: boolean }>

export type ControlAnswer = JsonAnswer | { lines: AsyncIterable<string> }

/** What is wrong with parameters that are each right: words for people at a shell, too. */
export type Refusal = { what: string; why: string; act: string }

/** `now`: of the answer where it has one, so that clocks may differ. */
export type Shown<Values> = {
  now: EpochMs
  values: Values
  /** Flags of `prints` that are given. */
  prints: ReadonlySet<string>
}

/** The one who asks may have another clock. */
export function nowOf(answer: unknown): EpochMs {
  const { now } = Object(answer) as { now?: string }
  return now === undefined ? Date.now() : Date.parse(now)
}

type Answered = RouteRequest<unknown>

type Answer = Promise<ControlAnswer> | ControlAnswer

/** `run`: what the daemon as a whole does. The others need only the stages of the request. */
type Answers<Request> =
  { answer(request: Request): Answer } | { run(request: Request, control: DaemonControl): Answer }

export type Operation = OperationRow & Answers<Answered>

type OperationRow = Pick<Route, 'body'> & {
  /** `batches/retry`. */
  name: string
  /** Of an operation that lists. */
  path?: string
  effect: keyof typeof effects
  /** One sentence, in the imperative. */
  summary: string
  /** Paragraphs below the options of the command. */
  notes?: readonly string[]
  parameters: z.ZodObject
  /** Flags of the command alone: what else it prints. */
  prints?: Readonly<Record<string, string>>
  /** Its parameter `id` may stand in the body, too: ids-in-body.ts. */
  idsInBody?: boolean
  /** What the answer is; without a schema it is not JSON, or any JSON. */
  means: string
  schema?: z.ZodType
  contentType?: string
  /** Also while the spool is not open. */
  alwaysPossible?: boolean
  /** Its parameter `yes` is for what only a person may decide; all else is done without it. */
  actsWithoutYes?: true
  /** Checked by the command before a daemon is asked, and by the daemon. */
  refuses?(values: unknown): Refusal | null
  /** The answer for a person. Without it, there is no command, or it has a file of its own in src/cli. */
  text?(answer: unknown, shown: Shown<unknown>): readonly Block[]
  /** Exit status 1 of the command where it is false. */
  isDone?(answer: unknown, values: unknown): boolean
}

type OperationOf<Shape extends z.ZodRawShape, Schema extends z.ZodType> = Omit<
  OperationRow,
  'parameters' | 'schema' | 'refuses' | 'text' | 'isDone'
> & {
  parameters: z.ZodObject<Shape>
  schema?: Schema
  refuses?(values: z.output<z.ZodObject<Shape>>): Refusal | null
  text?(answer: z.output<Schema>, shown: Shown<z.output<z.ZodObject<Shape>>>): readonly Block[]
  isDone?(answer: z.output<Schema>, values: z.output<z.ZodObject<Shape>>): boolean
} & Answers<RouteRequest<z.output<z.ZodObject<Shape>>>>

/** The parameters that `answer` gets, and the answers that `text` gets, are those of the schemas. */
export function operation<Shape extends z.ZodRawShape, Schema extends z.ZodType>(
  of: OperationOf<Shape, Schema>,
): Operation {
  return of
}

/** Without `yes` it only reports what it would do. */
export function needsYes({ parameters, actsWithoutYes }: Operation): boolean {
  return 'yes' in parameters.shape && actsWithoutYes !== true
}

/** Null where the parameters may stand together. */
export function refusedBy(of: Operation, values: unknown): JsonAnswer | null {
  const refused = of.refuses?.(values) ?? null
  return refused && problem(400, 'REQUEST_INVALID', refused)
}

/** What it answers; null where the daemon cannot be changed yet. */
export function answerTo(of: Operation, request: Answered): Answer | null {
  if ('answer' in of) return of.answer(request)
  const { control } = request.source.stages
  return control ? of.run(request, control) : null
}

/** Operations that change something need one selection. A request without one does not mean all. */
export function selectionRefused(
  noun: string,
  { all, id = [], ...filter }: { all: boolean; id?: readonly string[]; [name: string]: unknown },
): Refusal | null {
  const names = Object.keys(filter).filter((name) => isGiven(filter[name]))
  const given = [...(id.length > 0 ? ['ids'] : []), ...names]
  if (all && given.length > 0)
    return {
      what: `${given.join(', ')} and all are given together.`,
      why: `all selects every ${noun}, the others only some.`,
      act: 'Give one of them.',
    }
  if (all || given.length > 0) return null
  return {
    what: `No ${noun} is selected.`,
    why: `A request without a selection does not mean every ${noun}.`,
    act: `Give ids, or a filter (${Object.keys(filter).join(', ')}), or all.`,
  }
}

/** A filter without values selects everything. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0)
}
