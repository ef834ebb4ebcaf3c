import "./style.css";

export const metadata = { title: "Chat with an agent" };

export default function Layout({ children }) {
  return (
    <html lang="en">
      <body>{children}</body>
    </html>
  );
}
