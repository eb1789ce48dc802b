// control-route.ts: what a path below /control is. control.ts makes routes of them.

import type { z } from 'zod'
import type { DaemonControl } from '../../types.ts'
import type { JsonAnswer } from '../json-answer.ts'
import type { Route, RouteRequest } from '../http-routing/route.ts'

export type ControlAnswer = JsonAnswer | { lines: AsyncIterable<string> }

export type ControlRoute = Pick<Route, 'summary' | 'parameters' | 'answers' | 'body'> & {
  /** Behind `/control/`; also the name of the change in the audit log. */
  name: string
  /** Shows whole dead letters or batches, and needs the right to read only. */
  shows?: boolean
  /** Its parameter `id` may stand in the body, too: ids-in-body.ts. */
  idsInBody?: boolean
  /** Is not in the audit log. */
  changesNothing?: boolean
  /** Also while the spool is not open. Its `answer` must not use `control`. */
  alwaysPossible?: boolean
  answer(request: RouteRequest<unknown>, control: DaemonControl): Promise<ControlAnswer> | ControlAnswer
}

type ControlRouteOf<Shape extends z.ZodRawShape> = Omit<ControlRoute, 'parameters' | 'answer'> & {
  parameters: z.ZodObject<Shape>
  answer(
    request: RouteRequest<z.output<z.ZodObject<Shape>>>,
    control: DaemonControl,
  ): Promise<ControlAnswer> | ControlAnswer
}

/** The parameters that `answer` gets are those of the schema. */
export function controlRoute<Shape extends z.ZodRawShape>(of: ControlRouteOf<Shape>): ControlRoute {
  return of
}
