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
    'name of your choice. `telemetry-gateway check --config FILE` reports all problems, with line and column.',
    '',
  ]
  for (const [name, section] of Object.entries(root.properties ?? {})) {
    lines.push(`## ${name}`, '')
    lines.push(...facts(root, section, requirednessOf(root, name)))
    lines.push(...children(root, section, name))
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

function children(root: Shape, shape: Shape, path: string, depth = 0): string[] {
  if (depth > depthMax) return []
  const lines: string[] = []
  const seen = new Set<string>()
  for (const alternative of alternatives(root, shape)) {
    if (alternative.items) lines.push(...children(root, alternative.items, `${path}[]`, depth + 1))
    for (const [name, property] of Object.entries(alternative.properties ?? {})) {
      const key = `${name} ${JSON.stringify(property)}`
      if (seen.has(key)) continue
      seen.add(key)
      lines.push(...option(root, property, `${path}.${name}`, requirednessOf(alternative, name), depth))
    }
    const named = alternative.additionalProperties
    if (typeof named === 'object') lines.push(...option(root, named, `${path}.<name>`, '', depth))
  }
  return lines
}

function option(root: Shape, shape: Shape, path: string, required: string, depth: number): string[] {
  return [`### \`${path}\``, '', ...facts(root, shape, required), ...children(root, shape, path, depth + 1)]
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
