// openapi.ts: GET /openapi.json: the document of all paths, OpenAPI 3.1, made of the routes: their parameters
// are those that are checked, and their answers have the schemas that a test compares with a running daemon.

import type { z } from 'zod'
import { answerShape } from '../../status-schema/status-schema.ts'
import { problemSchema } from '../answer-schemas/answer-schemas.ts'
import { ok, requestCodes } from '../json-answer.ts'
import { metaOf, noParameters } from './parameters.ts'
import { keyParameter } from './route-list.ts'
import { route, type DocumentedAnswer, type Route } from './route.ts'

type Json = Record<string, unknown>

const jsonType = 'application/json; charset=utf-8'
const problemType = 'application/problem+json; charset=utf-8'

export function documentRoute(routes: () => readonly Route[]): Route {
  let made: Json | null = null
  return route({
    method: 'GET',
    path: '/openapi.json',
    summary: 'Shows the OpenAPI document of all paths.',
    right: 'read',
    parameters: noParameters,
    answers: { 200: { means: 'The document, OpenAPI 3.1.' } },
    answer: ({ source }) => ok((made ??= openApiOf(routes(), source.version))),
  })
}

export function openApiOf(routes: readonly Route[], version: string): Json {
  const paths: Record<string, Json> = {}
  for (const one of routes) {
    const operations = (paths[one.path] ??= {})
    operations[one.method.toLowerCase()] = operationOf(one)
    if (one.method === 'GET') operations['head'] = headOf(one)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'telemetry gateway',
      version,
      description:
        'The ops port of the gateway. Paths below /control change something: on the control socket, or over ' +
        'TCP for users with the right `change`. Answers may get more members; they lose none.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: [
      { name: 'read', description: 'Shows something.' },
      { name: 'control', description: 'Changes something.' },
      { name: 'login', description: 'Logs in or out with a browser.' },
    ],
    paths,
    components: {
      schemas: { Problem: shapeOf(problemSchema) },
      responses: {
        Problem: {
          description: `A problem (RFC 9457). Codes: ${Object.keys(requestCodes).join(', ')}, and those of failed changes.`,
          content: { [problemType]: { schema: { $ref: '#/components/schemas/Problem' } } },
        },
      },
      securitySchemes: {
        user: {
          type: 'http',
          scheme: 'basic',
          description: 'A user of `ops.users`. The control socket needs none.',
        },
      },
    },
  }
}

function operationOf(one: Route): Json {
  return {
    operationId: idOf(one),
    summary: one.summary,
    tags: [
      one.right === 'change' || one.right === 'show' ? 'control' : one.method === 'POST' ? 'login' : 'read',
    ],
    security: one.right === 'open' ? [] : [{}, { user: [] }],
    parameters: parametersOf(one),
    ...(one.body && {
      requestBody: {
        description: one.body.means,
        required: one.body.isOptional !== true,
        content: { [one.body.contentType]: { schema: {} } },
      },
    }),
    responses: {
      ...Object.fromEntries(Object.entries(one.answers).map(([status, of]) => [status, responseOf(of)])),
      ...problems(one),
    },
  }
}

/** The same without a body. */
function headOf(one: Route): Json {
  const [status, { means }] = Object.entries(one.answers)[0] ?? ['200', { means: '' }]
  return {
    operationId: `head${idOf(one).slice(3)}`,
    summary: `${one.summary} Without the body.`,
    tags: ['read'],
    security: one.right === 'open' ? [] : [{}, { user: [] }],
    parameters: parametersOf(one),
    responses: { [status]: { description: means }, default: { description: 'A problem.' } },
  }
}

/** Statuses that every path, or every path of its kind, may answer; others are `default`. */
function problems({ right, answers }: Route): Json {
  const statuses = [400, 403, 404, 413, 422, 503, ...(right === 'open' ? [] : [401, 429])]
  const others = statuses.filter((status) => answers[status] === undefined)
  const problem = { $ref: '#/components/responses/Problem' }
  return { ...Object.fromEntries(others.map((status) => [status, problem])), default: problem }
}

function responseOf({ means, contentType = jsonType, otherType, schema }: DocumentedAnswer): Json {
  const other = otherType === undefined ? {} : { [otherType]: { schema: { type: 'string' } } }
  const content = { [contentType]: { schema: schema ? shapeOf(schema) : {} }, ...other }
  return { description: means, content }
}

function parametersOf({ path, parameters }: Route): readonly Json[] {
  const { name, description } = keyParameter
  const key = { name, in: 'path', required: true, description, schema: { type: 'string', minLength: 1 } }
  return [
    ...(path.includes('{key}') ? [key] : []),
    ...Object.entries(parameters.shape).map(([query, schema]) => {
      const { description: about, required, json } = metaOf(schema)
      return { name: query, in: 'query', required, description: about, schema: json }
    }),
  ]
}

function idOf({ method, path }: Route): string {
  const words = path
    .replaceAll(/[{}]/g, '')
    .split(/[/.-]/)
    .filter((word) => word !== '')
  const name = (words.length === 0 ? ['paths'] : words).map((word) => word[0]?.toUpperCase() + word.slice(1))
  return `${method.toLowerCase()}${name.join('')}`
}

/** Which draft it is, the document says. */
function shapeOf(schema: z.ZodType): Json {
  const { $schema: _draft, ...shape } = answerShape(schema) as Json
  return shape
}
