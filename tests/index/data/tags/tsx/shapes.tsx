import React from "react";
/** A row. */
export const Row = ({ name }: Props) => <tr>{name}<Cell width={1} /></tr>;
export default function Table(props: Props): JSX.Element {
  const [state, setState] = useState<State>(null);
  return <Grid.Body><Row name={props.name} /></Grid.Body>;
}
interface Props { name: string; children?: React.ReactNode }
class Old extends React.Component<Props> { render() { return <div />; } }
