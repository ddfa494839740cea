/** The little of SVG that a bar chart needs. */

/** Text or markup that `element()` made. */
export type Markup = string & { readonly markup: unique symbol };

/** `<name …>children</name>`; attributes are escaped, text goes through `text()`. */
export function element(name: string, attributes: Record<string, string | number>, ...children: Markup[]): Markup {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${text(String(value))}"`);
  const start = `<${name}${written.join("")}`;
  return (children.length === 0 ? `${start}/>` : `${start}>${children.join("")}</${name}>`) as Markup;
}

/** Text as it must stand inside an element or an attribute. */
export function text(plain: string): Markup {
  return plain
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;") as Markup;
}
