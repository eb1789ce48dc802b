// config-reference.ts: generates the documentation of the config from the schema: config/reference.md for
// people and config/gateway.schema.json for editors; and the table of fields of another document, such as
// /status. `npm run docs` writes them.

import type { z } from 'zod'
import { alternatives, requirednessOf, shapeOf, typeOf, type Shape } from './schema-shape.ts'

/** The JSON Schema of the config file, as text. */
export function schemaText(schema: z.ZodType): string {
  const shape = { title: 'Telemetry gateway configuration', ...shapeOf(schema) }
  return `${JSON.stringify(shape, null, 2)}\n`
}

/** The reference as Markdown: each option with its path, type, default and description. */
export function referenceText(schema: z.ZodType): string {
  const root = shapeOf(schema)
  const lines = [
    '# Configuration reference',
    '',
    '<!-- Written by `npm run docs` from the schema in src/*/config.ts. Do not edit. -->',
    '',
    'One YAML file. Durations are written `30s`, `5m`, `1.5h`, `250ms`; sizes `64MiB`, `20GiB`, `512B`.',
    'In any value, `${env:NAME}` is replaced by an environment variable and `${file:PATH}` by the text of a file;',
    '`$${` is a literal `${`. Inside `{ }` and `[ ]` put them in quotes. Secrets must be given in one of',
    'these two ways, not in the config itself. Certificates, keys and authorities of TLS may be a path alone:',
    '`cert: /etc/.../cert.pem` is `${file:/etc/.../cert.pem}`. Relative paths start at the folder of the config file.',
    '',
    'An option is optional unless it is marked **required**. `[]` stands for each entry of a list, `<name>` for a',
    'name of your choice. `as in` names options that are described in another place of this page.',
    '`telemetry-gateway check --config FILE` reports all problems, with line and column.',
    '',
  ]
  const printed: Printed = new Map()
  for (const [name, section] of Object.entries(root.properties ?? {})) {
    lines.push(`## ${name}`, '')
    lines.push(...facts(root, section, requirednessOf(root, name)))
    lines.push(...children(root, section, name, printed))
  }
  return `${lines.join('\n').trimEnd()}\n`
}

/** Path, type and meaning of each field; `[]` stands for each entry of a list. */
export function fieldRows(schema: z.ZodType): [path: string, type: string, meaning: string][] {
  const root = shapeOf(schema)
  return rowsOf(root, root, '')
}

function rowsOf(root: Shape, shape: Shape, path: string): [string, string, string][] {
  return alternatives(root, shape).flatMap((one) => [
    ...(one.items ? rowsOf(root, one.items, `${path}[]`) : []),
    ...Object.entries(one.properties ?? {}).flatMap(([name, field]): [string, string, string][] => {
      const below = path === '' ? name : `${path}.${name}`
      const types = alternatives(root, field).flatMap(typesOf)
      return [
        [below, [...new Set(types)].join(' or '), field.description ?? ''],
        ...rowsOf(root, field, below),
      ]
    }),
  ])
}

/** Of what the gateway says a range is of no use. */
function typesOf({ type, ...shape }: Shape): string[] {
  // JSON Schema allows a list of types.
  const types = [type as string | readonly string[] | undefined].flat()
  return types.map((one) => {
    if (one === 'null') return 'null'
    if (one === 'integer') return 'whole number'
    if (one === 'number') return 'number'
    return typeOf(one === undefined ? shape : { ...shape, type: one })
  })
}

/** Deeper than any option is nested. A schema that refers to itself ends here. */
const depthMax = 8

/** `sources[].map.speed.unit` and deeper: a line is enough. */
const lineFromDepth = 2

/** Where an option was printed, by its name and everything that is said of it and of what is in it. */
type Printed = Map<string, string>

type Child = { name: string; shape: Shape; required: string }

/**
 * Options that stand elsewhere with the same words are named only, with that place. Deep ones that hold no
 * others have a line, and no heading.
 */
function children(root: Shape, shape: Shape, path: string, printed: Printed, depth = 0): string[] {
  if (depth > depthMax) return []
  const lines: string[] = []
  const known = new Map<string, Set<string>>()
  const short: string[] = []
  for (const { at, child } of childrenOf(root, shape, path)) {
    const { name } = child
    const text = option(root, child, name, new Map(), depth).join('\n')
    const place = printed.get(text)
    if (place === undefined) {
      printed.set(text, at)
      if (depth >= lineFromDepth && isLeaf(root, child.shape)) short.push(lineOf(root, child))
      else lines.push(...option(root, child, `${at}.${name}`, printed, depth))
    } else if (isElsewhere(place, at)) known.set(place, (known.get(place) ?? new Set()).add(`\`${name}\``))
  }
  const elsewhere = [...known].map(([place, names]) => `- as in \`${place}\`: ${[...names].join(', ')}`)
  const list = [...short, ...elsewhere]
  return [...list, ...(list.length > 0 ? [''] : []), ...lines]
}

function childrenOf(root: Shape, shape: Shape, path: string, depth = 0): { at: string; child: Child }[] {
  if (depth > depthMax) return []
  return alternatives(root, shape).flatMap((one) => {
    const { items, properties = {}, additionalProperties: named } = one
    return [
      ...(items ? childrenOf(root, items, `${path}[]`, depth + 1) : []),
      ...Object.entries(properties).map(([name, own]) => ({
        at: path,
        child: { name, shape: own, required: requirednessOf(one, name) },
      })),
      ...(typeof named === 'object'
        ? [{ at: path, child: { name: '<name>', shape: named, required: '' } }]
        : []),
    ]
  })
}

function option(
  root: Shape,
  { shape, required }: Child,
  path: string,
  printed: Printed,
  depth: number,
): string[] {
  const below = children(root, shape, path, printed, depth + 1)
  return [`### \`${path}\``, '', ...facts(root, shape, required), ...below]
}

/** A map and a list of such maps stand in one place. */
function isElsewhere(place: string, at: string): boolean {
  return place !== at && `${place}[]` !== at && place !== `${at}[]`
}

function isLeaf(root: Shape, shape: Shape): boolean {
  return childrenOf(root, shape, '').length === 0
}

function lineOf(root: Shape, { name, shape, required }: Child): string {
  const [type = '', , description] = facts(root, shape, required)
  return `- \`${name}\`: ${type}${description === undefined ? '' : `. ${description}`}`
}

function facts(root: Shape, shape: Shape, required: string): string[] {
  const type = [...new Set(alternatives(root, shape).map(typeOf))].join(' or ')
  const standard =
    shape.default === undefined || JSON.stringify(shape.default) === '{}'
      ? ''
      : ` · default \`${defaultText(shape.default)}\``
  const examples = shape.examples?.length
    ? ` · such as ${shape.examples.map((one) => `\`${String(one)}\``).join(', ')}`
    : ''
  const lines = [
    `${required !== '' && !standard ? `**${required}** · ` : ''}${type}${standard}${examples}`,
    '',
  ]
  const description =
    shape.description ?? alternatives(root, shape).find((one) => one.description)?.description
  if (description !== undefined) lines.push(description, '')
  return lines
}

function defaultText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
